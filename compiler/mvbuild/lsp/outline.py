"""a file, or the project -> its symbols: CTEs, macros, entries of YAML; models, seeds and sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from mvbuild.dataclass import dataclass
from mvbuild.lsp.definition import macro_files
from mvbuild.lsp.names import Names, home_of, name_of
from mvbuild.lsp.sql_text import cte_heads, macros
from mvbuild.project.yaml_spans import Entry, ListNode, MapNode, read_yaml
from mvbuild.source import SourceFile, Span

SymbolKind = Literal["model", "source", "column", "cte", "macro", "entry"]
_MOST = 200
_LISTS: dict[str, SymbolKind] = {"models": "model", "seeds": "model", "sources": "source", "tables": "source", "columns": "column"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """`whole` contains `name_span`, and the symbols below it."""

    name: str
    kind: SymbolKind
    name_span: Span
    whole: Span
    children: tuple[Symbol, ...] = ()


def symbols_of_file(path: str, text: str) -> tuple[Symbol, ...]:
    file = SourceFile(path, text)
    if path.endswith((".yml", ".yaml")):
        document, _ = read_yaml(file)
        return tuple(_of_map(document)) if isinstance(document, MapNode) else ()
    heads = [(head.at, name, "cte") for name, head in cte_heads(text).items()]
    found = sorted([*heads, *((at, name, "macro") for name, (at, _) in macros(text).items())])
    return tuple(_symbol(file, at, text[at : at + len(name)], kind) for at, name, kind in found)  # type: ignore[arg-type]


def symbols_of_project(names: Names, query: str) -> tuple[Symbol, ...]:
    """Those whose name contains the query, ignoring case; at most 200."""
    found = sorted(_all(names), key=lambda symbol: (not symbol.name.lower().startswith(query.lower()), symbol.name))
    return tuple(symbol for symbol in found if query.lower() in symbol.name.lower())[:_MOST]


def _all(names: Names) -> Iterator[Symbol]:
    for node in names.graph.nodes.values():
        home = home_of(node)
        if home is not None:
            kind: SymbolKind = "source" if node.id.startswith("source.") else "model"
            yield Symbol(name=name_of(node), kind=kind, name_span=home, whole=home)
    for file in macro_files(names.graph.project.root, names):
        yield from (_symbol(file, at, name, "macro") for name, (at, _) in macros(file.text).items())


def _symbol(file: SourceFile, at: int, name: str, kind: SymbolKind) -> Symbol:
    span = Span(file, at, at + len(name))
    return Symbol(name=name.strip("`"), kind=kind, name_span=span, whole=span)


def _of_map(node: MapNode) -> Iterator[Symbol]:
    for entry in node.entries:
        if isinstance(entry.node, ListNode):
            yield from _of_list(entry, entry.node)


def _of_list(entry: Entry, items: ListNode) -> Iterator[Symbol]:
    for item in items.items:
        name = item.get("name") if isinstance(item, MapNode) else None
        if isinstance(item, MapNode) and name is not None:
            text = name.node.span.text.strip("'\"")
            kind = _LISTS.get(entry.key, "entry")
            yield Symbol(name=text, kind=kind, name_span=name.node.span, whole=item.span, children=tuple(_of_map(item)))
