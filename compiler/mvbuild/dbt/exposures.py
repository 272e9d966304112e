"""Exposures and unit tests in the YAML of a dbt project -> what is kept of them, in ImportState, or why not."""

from __future__ import annotations

from collections.abc import Iterator

from mvbuild.dbt.import_state import DescribedImport, ImportState
from mvbuild.dbt.read import entries_of, get, items_of, text_of
from mvbuild.dbt.scorecard import Item, Kind
from mvbuild.project.key_types import Block, check
from mvbuild.project.keys import EXPOSURE, UNIT_TEST
from mvbuild.project.table_calls import table_call
from mvbuild.project.yaml_spans import Entry, ListNode, MapNode, Node, ScalarNode, plain

SECTIONS: dict[str, tuple[Kind, str, Block]] = {
    "exposures": ("exposure", "exposure", EXPOSURE),
    "unit_tests": ("unit test", "unit-test", UNIT_TEST),
}


def judge_described(work: ImportState, entry: Entry) -> list[Item]:
    """Add the items of one section, and return them. What reads something that is refused is refused later, by `cascade`."""
    kind, code, block = SECTIONS[entry.key]
    items = []
    for node in items_of(MapNode((entry,), entry.span), entry.key):
        item = work.item(kind, text_of(node, "name") or "?", node.span)
        described = DescribedImport(item=item, section=entry.key, node=id(node))
        for wrong in check(node, block):
            item.add(code, wrong.message, wrong.span, help=wrong.help)
        for place in _reads(node, entry.key):
            _read(work, described, place, code)
        for key in _tested_versions(work, node):
            described.reads[key] = node.span
        if entry.key == "unit_tests":
            _only_of_dbt(node, item)
        work.described.append(described)
        items.append(item)
    return items


def _reads(node: Node, section: str) -> Iterator[Node]:
    if section == "exposures":
        depends = get(node, "depends_on")
        yield from depends.items if isinstance(depends, ListNode) else ()
        return
    yield from (place for name in ("model",) if (place := get(node, name)))
    yield from (place for given in items_of(node, "given") if (place := get(given, "input")))


def _tested_versions(work: ImportState, node: Node) -> Iterator[str]:
    """The other versions of the model that a unit test tests."""
    versions = plain(node).get("versions")
    chosen = versions if isinstance(versions, dict) else {}
    named = (chosen.get(key) for key in ("include", "exclude"))
    include, exclude = ({str(v) for v in (one if isinstance(one, list) else [] if one is None else [one])} for one in named)
    for key, one in work.versions.items():
        v = str(one.version.v)
        if one.version.model.lower() == (text_of(node, "model") or "").lower() and v not in exclude and (not include or v in include):
            yield key


def _read(work: ImportState, described: DescribedImport, place: Node, code: str) -> None:
    text = str(plain(place))
    call = table_call(text)
    name = text if described.section == "unit_tests" and call is None else ""
    if call is not None and call.kind == "source":
        found = f"source.{call.names[0].lower()}"
        is_known = call.names[0].lower() in work.sources
    else:
        found = work.named(call.names[-1], call.version) if call else work.named(name)
        known = (work.models, work.seeds, work.snapshots, work.python)
        is_known = any(found in things for things in known)
    if is_known:
        described.reads[found] = place.span
    else:
        described.item.add(code, f"'{text}' is not a model, seed or source that is imported", place.span)


def _only_of_dbt(node: Node, item: Item) -> None:
    """What means something in dbt that an MV does not have."""
    macros = get(get(node, "overrides"), "macros")
    for entry in entries_of(macros):
        if entry.key == "is_incremental" and plain(entry.node) is not False:
            message = "It tests the incremental run of a model, and an MV has one query"
            item.add("unit-test", message, entry.span, help="Write what the whole query returns; `incremental: true` tests refreshes too.")
    rows = [get(part, "fixture") for part in (*items_of(node, "given"), get(node, "expect"))]
    for fixture in rows:
        if isinstance(fixture, ScalarNode) and fixture.value is not None:
            message = "Its rows are in a fixture, which is not copied"
            item.add("unit-test", message, fixture.span, help="Write the rows here, or copy the test and its file.")
