"""the text at the cursor -> Markdown about it: a table with its columns and freshness, a column, a macro, a key of YAML."""

from __future__ import annotations

from pathlib import Path

from mvbuild.graph.model import ModelNode, Node, SeedNode
from mvbuild.lsp.definition import macro_files, name_in_yaml
from mvbuild.lsp.freshness import Freshness
from mvbuild.lsp.names import Names, name_of, properties_of
from mvbuild.lsp.sql_text import Named, cte_heads, is_cte, macros, named_at
from mvbuild.lsp.yaml_place import doc_at
from mvbuild.source import SourceFile

_MOST_COLUMNS = 50


def hover(root: Path, path: str, text: str, offset: int, names: Names | None, freshness: Freshness) -> str:
    """Empty if nothing is known."""
    is_yaml = path.endswith((".yml", ".yaml"))
    named = name_in_yaml(text, offset) if is_yaml else named_at(text, offset)
    if named is None:
        return doc_at(Path(path).name, text, offset) if is_yaml else ""
    if named.kind == "macro":
        return _macro(root, path, text, named.parts[0], names)
    if names is None:
        return ""
    if is_cte(named, cte_heads(text)):
        columns = ", ".join(f"`{name}`" for name in names.columns_of_cte(text, named.parts[0]))
        return f"CTE **{named.parts[0]}** of this file{f': {columns}' if columns else ''}"
    node = names.node(named)
    return about(node, names, freshness) if node is not None else _column(text, named, names)


def about(node: Node, names: Names, freshness: Freshness) -> str:
    """A table: what it is, its freshness, and its columns."""
    lines = [f"**{name_of(node)}** {_kind(node)} `{node.identifier}`"]
    described = properties_of(node)
    if described.description:
        lines.append(described.description.strip())
    if isinstance(node, ModelNode) and node.storage is not None and (sentence := freshness.sentence(node.id)):
        lines.append(sentence)
    docs = {column.name.lower(): " ".join(column.description.split()) for column in described.columns}
    columns = names.columns(node)
    rows = [f"| `{c.name}` | {_cell(c.type or '')} | {_cell(docs.get(c.key, ''))} |" for c in columns[:_MOST_COLUMNS]]
    if rows:
        lines.append("\n".join(["| column | type | |", "|---|---|---|", *rows]))
    if len(columns) > _MOST_COLUMNS:
        lines.append(f"and {len(columns) - _MOST_COLUMNS} more")
    if node.id not in names.bound.columns:
        lines.append("*There may be more columns: not everything it reads is known; run `mvbuild lock`.*")
    return "\n\n".join(lines)


def _kind(node: Node) -> str:
    if isinstance(node, ModelNode):
        return {"materialized_view": "materialized view"}.get(node.materialized, node.materialized)
    if isinstance(node, SeedNode):
        return "seed"
    return "source" if node.source else "table of the catalog"


def _column(text: str, named: Named, names: Names) -> str:
    """The column in all tables and CTEs of the text that have it, or in the one that qualifies it."""
    qualifier = named.parts[-2].lower() if len(named.parts) > 1 else None
    found = []
    for alias, node in dict(names.in_scope(text)).items():
        column = names.bound.column(node.id, named.parts[-1])
        if column is None or (qualifier and qualifier != alias.lower()):
            continue
        described = next((c.description for c in properties_of(node).columns if c.name.lower() == column.key), "")
        origins = sorted(f"{name_of(names.graph.nodes[o.node])}.{o.column}" for o in names.bound.origins(node.id, column.name))
        came = f"\n\ncomes from {', '.join(f'`{o}`' for o in origins[:5])}" if isinstance(node, ModelNode) and origins else ""
        found.append(f"`{column.name}` {column.type or 'unknown type'} of **{name_of(node)}**{f': {described}' if described else ''}{came}")
    for alias, cte, columns in names.ctes_in_scope(text):
        if named.parts[-1].lower() in map(str.lower, columns) and (qualifier is None or qualifier == alias.lower()):
            found.append(f"`{named.parts[-1]}` of the CTE **{cte}**")
    return "\n\n".join(found)


def _macro(root: Path, path: str, text: str, name: str, names: Names | None) -> str:
    for file in (SourceFile(path, text), *macro_files(root, names)):
        if name in (known := macros(file.text)):
            return f"macro `{name}{known[name][1]}` of {file.path}"
    return ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
