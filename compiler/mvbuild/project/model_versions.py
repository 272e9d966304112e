"""`versions:` of a model in YAML -> what each version declares, as if it were a model of its own. The rules are dbt's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from mvbuild.diagnostics import Diagnostic, Note, did_you_mean, error
from mvbuild.project.loaded import Deprecation, ModelVersion
from mvbuild.project.setting import Layer, Setting
from mvbuild.project.yaml_spans import Entry, ListNode, MapNode, Node, ScalarNode, is_empty, plain

_OF_A_VERSION = ("description", "data_tests", "tests", "deprecation_date")
"""Keys of a version that take the place of those of the model."""


def versions_of(node: MapNode, report: list[Diagnostic]) -> Iterator[tuple[MapNode, MapNode, ModelVersion]]:
    """For each version: the model as it would be declared without versions, the node of the version, and what it is."""
    name = plain(node).get("name")
    declared = [(item, value) for item in _maps(node, "versions") if _is_version(value := plain(item).get("v"))]
    if not isinstance(name, str) or not declared:
        return
    first: dict[str, Node] = {}
    for item, value in declared:
        place = _place(item, "v")
        other = first.setdefault(str(value), place)
        if other is not place:
            notes = (Note(message="first declared here", span=other.span),)
            report.append(error("duplicate-name", f"Duplicate version {value} of '{name}'", place.span, help="Remove one.", notes=notes))
    latest = _latest(node, name, [value for _, value in declared], report)
    for item, value in declared:
        keys = plain(item)
        file = keys.get("defined_in")
        version = ModelVersion(
            model=name,
            v=value,
            latest=latest,
            file=file.removesuffix(".sql") if isinstance(file, str) else f"{name}_v{value}",
            span=_place(item, "v").span,
        )
        yield _as_model(node, item, report), item, version


def default_alias(version: ModelVersion) -> Layer:
    """As in dbt, the version is a part of the name in the catalog, unless a setting names it."""
    return {"alias": Setting(f"{version.model}_v{str(version.v).replace('.', '_')}", version.span)}


def deprecation_of(node: MapNode, report: list[Diagnostic]) -> Deprecation | None:
    """The `deprecation_date` of a model: a day or an instant."""
    entry = node.get("deprecation_date")
    if entry is None or not isinstance(entry.node, ScalarNode) or entry.node.value is None:
        return None
    value = entry.node.value
    if not isinstance(value, date):
        try:
            value = datetime.fromisoformat(str(value))
        except ValueError:
            help = "Write it as 2026-12-31."
            report.append(error("wrong-type", "'deprecation_date' must be a date", entry.node.span, help=help))
            return None
    return Deprecation(date=value.isoformat(), span=entry.node.span)


def order(versions: Sequence[Any]) -> list[Any]:
    """Versions from the oldest to the newest: by number if all are numbers, otherwise as text."""
    try:
        # Not as floats, in which long numbers are too large, or equal. NaN has no order.
        numbers = {str(v): Decimal(str(v)) for v in versions}
    except InvalidOperation:
        numbers = {}
    if numbers and all(number.is_finite() for number in numbers.values()):
        return sorted(versions, key=lambda v: numbers[str(v)])
    return sorted(versions, key=str)


def _is_version(value: Any) -> bool:
    """Anything else was reported when the keys were checked."""
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _latest(node: MapNode, name: str, versions: Sequence[Any], report: list[Diagnostic]) -> Any:
    entry = node.get("latest_version")
    value = plain(entry.node) if entry else None
    if entry is None or not _is_version(value):
        return order(versions)[-1]
    known = next((v for v in versions if str(v) == str(value)), None)
    if known is None:
        message = f"'latest_version' of '{name}' is {value}, which is not one of its versions"
        report.append(error("wrong-type", message, entry.node.span, help=f"Its versions are {', '.join(map(str, order(versions)))}."))
        return order(versions)[-1]
    return known


def _as_model(node: MapNode, version: MapNode, report: list[Diagnostic]) -> MapNode:
    mine = {entry.key: entry for entry in version.entries if entry.key in _OF_A_VERSION}
    replaced = {"data_tests", "tests"} if {"data_tests", "tests"} & mine.keys() else set()
    kept = [entry for entry in node.entries if entry.key not in mine and entry.key not in replaced and entry.key != "columns"]
    columns = Entry("columns", node.span, ListNode(tuple(_columns(node, version, report)), node.span))
    return MapNode((*kept, *mine.values(), columns), node.span)


def _columns(node: MapNode, version: MapNode, report: list[Diagnostic]) -> Iterator[Node]:
    """Those of the model that the version includes, and its own. Without `include`, it includes all."""
    own, exclude = [], list[str]()
    include: Any = "all"
    for item in _maps(version, "columns"):
        keys = plain(item)
        if "include" in keys or "exclude" in keys:
            report.extend(_undeclared(node, item))
            include = keys.get("include") or ("all" if "include" not in keys else [])
            exclude = [str(plain(name)) for name in _listed(item, "exclude")]
        else:
            own.append(item)
    names = {str(plain(item).get("name")).lower() for item in own} | {name.lower() for name in exclude}
    wanted = None if include in ("all", "*") else {str(name).lower() for name in (include if isinstance(include, list) else [include])}
    for item in _maps(node, "columns"):
        name = str(plain(item).get("name")).lower()
        if name not in names and (wanted is None or name in wanted):
            yield item
    yield from own


def _undeclared(node: MapNode, item: MapNode) -> Iterator[Diagnostic]:
    """Names in `include` and `exclude` that the model does not declare."""
    declared = {str(plain(column).get("name")).lower(): str(plain(column).get("name")) for column in _maps(node, "columns")}
    for key in ("include", "exclude"):
        for named in _listed(item, key):
            name = str(plain(named))
            if name.lower() not in declared and not (key == "include" and name in ("all", "*")):
                message = f"'{plain(node)['name']}' has no column '{name}' to {key}"
                help = did_you_mean(name, declared.values()) or "Declare it under the `columns:` of the model."
                yield error("unknown-column", message, named.span, help=help)


def _listed(node: MapNode, key: str) -> tuple[Node, ...]:
    """The values of a list, or the only value."""
    entry = node.get(key)
    if entry is None or is_empty(entry.node):
        return ()
    return entry.node.items if isinstance(entry.node, ListNode) else (entry.node,)


def _place(node: MapNode, key: str) -> Node:
    entry = node.get(key)
    return entry.node if entry else node


def _maps(node: MapNode, key: str) -> Iterator[MapNode]:
    entry = node.get(key)
    for item in entry.node.items if entry and isinstance(entry.node, ListNode) else ():
        if isinstance(item, MapNode):
            yield item
