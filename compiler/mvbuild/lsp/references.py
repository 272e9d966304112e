"""a model, seed, source or CTE -> the places in the project's files that name it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from mvbuild.dataclass import dataclass
from mvbuild.graph.model import ModelNode, Node, SeedNode
from mvbuild.lsp.definition import name_in_yaml
from mvbuild.lsp.names import Names, ref_name_of
from mvbuild.lsp.sql_text import Named, calls, cte_heads, is_cte, last_part, named_at, qualifiers, tables
from mvbuild.project.yaml_spans import ListNode, MapNode, ScalarNode, read_yaml
from mvbuild.source import SourceFile, Span

_ENTRIES = (("models", "name"), ("seeds", "name"), ("unit_tests", "model"))
"""List of YAML -> the key of its items that names a model or seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """`span`: the name alone, without its namespace, quotes or call."""

    span: Span
    by_identifier: bool = False
    """A plain name of a table in SQL: it follows `alias`, where the model has one. Otherwise it is the name of the model."""


def reference_at(path: str, text: str, offset: int) -> Named | None:
    """The name at the cursor. In `big.id`, that is `big` or the column, depending on where the cursor is."""
    if path.endswith((".yml", ".yaml")):
        return name_in_yaml(text, offset)
    named = named_at(text, offset)
    if named is None or named.kind != "name" or named.start in {table.start for table in tables(text)}:
        return named
    first = text.find(".", named.start, named.end)
    if first < offset:
        return named
    return replace(named, parts=named.parts[:1], end=first)


def references(names: Names, node: Node, files: Iterable[SourceFile]) -> Iterator[Reference]:
    """In ref() and source(), by plain names, as a qualifier of columns, and in YAML; in the order of the files."""
    wanted = {ref_name_of(node).rpartition(".")[2].lower(), node.identifier.name.lower()}
    for file in files:
        if any(name in file.text.lower() for name in wanted):
            found = _in_yaml(names, node, file) if file.path.endswith((".yml", ".yaml")) else _in_sql(names, node, file)
            yield from sorted(found, key=lambda one: one.span.start)


def cte_references(file: SourceFile, name: str) -> tuple[Span, ...]:
    """Where the file defines, reads and qualifies by the CTE."""
    text, heads = file.text, cte_heads(file.text)
    head = heads.get(name.lower())
    if head is None:
        return ()
    quoted = text[head.at] == "`"
    places = {(head.at + quoted, head.at + quoted + len(name))}
    places |= {last_part(text, named) for named in tables(text) if is_cte(named, heads) and named.parts[0].lower() == name.lower()}
    places |= set(qualifiers(text, name))
    return tuple(Span(file, start, end) for start, end in sorted(places))


def _in_sql(names: Names, node: Node, file: SourceFile) -> Iterator[Reference]:
    text, heads = file.text, cte_heads(file.text)
    qualifying: set[str] = set()
    for named in _once((*calls(text), *tables(text))):
        if not is_cte(named, heads) and names.node(named) is node:
            yield Reference(span=Span(file, *last_part(text, named)), by_identifier=named.kind == "name")
    for named in tables(text):
        if named.alias is None and not is_cte(named, heads) and names.node(named) is node:
            qualifying.add(node.identifier.name.lower())
    for name in qualifying - heads.keys():
        yield from (Reference(span=Span(file, start, end), by_identifier=True) for start, end in qualifiers(text, name))


def _in_yaml(names: Names, node: Node, file: SourceFile) -> Iterator[Reference]:
    for named in calls(file.text):
        if names.node(named) is node:
            yield Reference(span=Span(file, *last_part(file.text, named)))
    document, _ = read_yaml(file)
    if not isinstance(document, MapNode) or not isinstance(node, ModelNode | SeedNode):
        return
    for key, inner in _ENTRIES:
        entry = document.get(key)
        for item in entry.node.items if entry is not None and isinstance(entry.node, ListNode) else ():
            value = item.get(inner) if isinstance(item, MapNode) else None
            scalar = value.node if value is not None else None
            if isinstance(scalar, ScalarNode) and str(scalar.value).lower() == ref_name_of(node).lower():
                yield Reference(span=_inside(scalar.span))


def _inside(span: Span) -> Span:
    """The text of a value, without its quotes."""
    quoted = span.file.text[span.start : span.start + 1] in ("'", '"')
    return Span(span.file, span.start + quoted, span.end - quoted)


def _once(found: Iterable[Named]) -> Iterator[Named]:
    """A call in FROM is both a call and a table."""
    return iter({named.start: named for named in found}.values())
