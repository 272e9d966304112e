"""`exposures:` in the YAML files of a project -> Exposures: what reads its tables, and who is responsible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error
from mvbuild.project.docs_blocks import DocsBlocks
from mvbuild.project.files import decode
from mvbuild.project.loaded import LoadedProject
from mvbuild.project.table_calls import table_call
from mvbuild.project.yaml_spans import ListNode, MapNode, plain, read_yaml
from mvbuild.source import SourceFile, Span

TYPES = ("dashboard", "notebook", "analysis", "ml", "application")
MATURITIES = ("high", "medium", "low")


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One table of `depends_on`: ("ref", "", name) or ("source", source, table), in lower case."""

    kind: str
    source: str
    name: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """Something outside of the project that reads its tables."""

    name: str
    label: str | None
    type: str
    owner: Mapping[str, Any]
    reads: tuple[Read, ...]
    url: str | None
    maturity: str | None
    description: str
    tags: tuple[str, ...]
    meta: Mapping[str, Any]
    span: Span
    file: SourceFile

    def id(self, project: str) -> str:
        """As in dbt."""
        return f"exposure.{project}.{self.name}"


def read_exposures(project: LoadedProject) -> tuple[Exposure, ...]:
    """The enabled ones. Raises ProjectError with everything that is wrong with their values; their keys were checked before."""
    report: list[Diagnostic] = []
    found: dict[str, Exposure] = {}
    docs = DocsBlocks(project.name, project.docs)
    for path in project.yaml_paths:
        text = (project.root / path).read_bytes()
        if b"exposures" not in text:
            continue
        file = decode(path, text)
        tree, _ = read_yaml(file)
        for node in _items(tree):
            exposure = _exposure(node, file, docs, report)
            if exposure is not None and found.setdefault(exposure.name, exposure) is not exposure:
                report.append(error("duplicate-name", f"Duplicate exposure '{exposure.name}'", exposure.span))
    if report:
        raise ProjectError(report)
    return tuple(found.values())


def _exposure(node: MapNode, file: SourceFile, docs: DocsBlocks, report: list[Diagnostic]) -> Exposure | None:
    declared = plain(node)
    config = declared.get("config") or {}
    if {declared.get("enabled"), config.get("enabled")} & {False} or not isinstance(declared.get("name"), str):
        return None
    place = node.get("name")
    span = place.node.span if place else node.span
    for key, known in (("type", TYPES), ("maturity", MATURITIES)):
        entry = node.get(key)
        if entry and declared[key] not in (*known, None):
            message = f"'{key}' of an exposure must be {', '.join(known[:-1])} or {known[-1]}"
            report.append(error("wrong-type", message, entry.node.span, help=did_you_mean(str(declared[key]), known)))
    return Exposure(
        name=declared["name"],
        label=declared.get("label"),
        type=str(declared.get("type")),
        owner=declared.get("owner") or {},
        reads=tuple(_reads(node, report)),
        url=declared.get("url"),
        maturity=declared.get("maturity"),
        description=docs.text(declared.get("description") or "", span, report),
        tags=tuple(dict.fromkeys((*_texts(declared.get("tags")), *_texts(config.get("tags"))))),
        meta={**(declared.get("meta") or {}), **(config.get("meta") or {})},
        span=span,
        file=file,
    )


def _reads(node: MapNode, report: list[Diagnostic]) -> Iterator[Read]:
    entry = node.get("depends_on")
    items = entry.node.items if entry and isinstance(entry.node, ListNode) else (entry.node,) if entry else ()
    for item in items:
        text = plain(item)
        call = table_call(text) if isinstance(text, str) else None
        if call is None:
            report.append(
                error(
                    "wrong-type",
                    "'depends_on' must be a list of ref('model') and source('source', 'table')",
                    item.span,
                    help="Write ref('model').",
                )
            )
        elif call.kind == "ref":
            yield Read(kind="ref", source="", name=call.model.lower(), text=text, span=item.span)
        else:
            yield Read(kind="source", source=call.names[0].lower(), name=call.names[1].lower(), text=text, span=item.span)


def _items(tree: object) -> Iterator[MapNode]:
    entry = tree.get("exposures") if isinstance(tree, MapNode) else None
    yield from (item for item in (entry.node.items if entry and isinstance(entry.node, ListNode) else ()) if isinstance(item, MapNode))


def _texts(value: Any) -> list[str]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
