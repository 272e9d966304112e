"""tree of a query without CTEs -> the same, with tables under canonical aliases and columns qualified where only one table can have them.

A base table with unknown columns may have any column, except a name that a subquery beside it has: the query would be ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from hashlib import sha256

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.equivalence.tidy import ALIAS, shown

Schema = Sequence[str]
"""Names of columns, in order."""


class Unclear(Exception):
    """A name with several possible meanings, so that nothing around it may be renamed."""


_INNER = "c__"


@dataclass(slots=True, kw_only=True)
class _Source:
    """A table or subquery in FROM. `columns`: name -> its canonical name; None if there may be any."""

    alias: str
    columns: dict[str, str] | None
    order: tuple[str, ...] = ()
    """The names as written."""

    @property
    def renames(self) -> bool:
        return any(name != canonical for name, canonical in (self.columns or {}).items())


@dataclass(slots=True, kw_only=True)
class _Resolver:
    schema: Mapping[str, Schema]
    made: int = 0
    stack: list[dict[str, _Source]] = field(default_factory=list)
    """What the SELECTs around know, the innermost last. A subquery in FROM starts with an empty list, because it sees nothing around it."""


def resolved(tree: exp.Expr, schema: Mapping[str, Schema]) -> None:
    """In place."""
    lowered = {id_.lower(): columns for id_, columns in schema.items()}
    _query(_Resolver(schema=lowered), tree)


def output_names(query: exp.Expr) -> tuple[str, ...] | None:
    """The names of a query's columns; None if a star hides them, or two are equal."""
    while isinstance(query, (exp.SetOperation, exp.Subquery)):
        query = query.this
    names = tuple(name_of(p) for p in query.expressions) if isinstance(query, exp.Select) else ()
    return names if names and all(names) and len({n.lower() for n in names}) == len(names) else None


def name_of(projection: exp.Expr) -> str:
    """The name of an output column; empty if it has none of its own, or is a star."""
    return projection.alias_or_name if isinstance(projection, (exp.Alias, exp.Column, exp.Dot)) and not projection.is_star else ""


def _query(resolver: _Resolver, query: exp.Expr) -> None:
    if isinstance(query, exp.SetOperation):
        _query(resolver, query.this)
        _query(resolver, query.expression)
    elif isinstance(query, exp.Subquery):
        _query(resolver, query.this)
    elif isinstance(query, exp.Select):
        _select(resolver, query)


def _select(resolver: _Resolver, select: exp.Select) -> None:
    sources: dict[str, _Source] = {}
    for relation in relations(select):
        name, source = _source(resolver, relation)
        if name in sources:
            raise Unclear
        sources[name] = source
    merging = [j for j in select.args.get("joins") or [] if j.args.get("using") or j.args.get("method")]
    if merging and any(isinstance(r, exp.Subquery) for r in relations(select)):
        raise Unclear
    if not merging:
        _stars(select, sources)
    resolver.stack.append(sources)
    aliases = {p.alias.lower() for p in select.expressions if isinstance(p, exp.Alias) and not _keeps_name(p)}
    for node in _own(select):
        if isinstance(node, exp.Column):
            _column(resolver, node, aliases)
        elif isinstance(node, exp.Query):
            _query(resolver, node)
    resolver.stack.pop()


def _keeps_name(alias: exp.Alias) -> bool:
    return isinstance(alias.this, exp.Column) and alias.this.name.lower() == alias.alias.lower()


def relations(select: exp.Select) -> list[exp.Expr]:
    """The items of FROM and JOIN, in order."""
    found = [select.args["from_"].this] if select.args.get("from_") else []
    return [*found, *(join.this for join in select.args.get("joins") or [])]


def _source(resolver: _Resolver, relation: exp.Expr) -> tuple[str, _Source]:
    """The name by which the query knows it, and its columns."""
    if isinstance(relation, exp.Subquery) and relation.args.get("alias") is None:
        relation.set("alias", exp.TableAlias(this=exp.to_identifier(f"{ALIAS}unnamed_{resolver.made}")))
    if isinstance(relation, exp.Table) and relation.args.get("alias") is None:
        relation.set("alias", exp.TableAlias(this=exp.to_identifier(relation.name)))
    alias = relation.args.get("alias")
    if not isinstance(alias, exp.TableAlias) or not isinstance(alias.this, exp.Identifier) or relation.args.get("joins"):
        raise Unclear
    name, listed = alias.this.name.lower(), [c.name for c in alias.args.get("columns") or ()]
    if isinstance(relation, exp.Subquery):
        inner = _Resolver(schema=resolver.schema, made=resolver.made)
        _query(inner, relation.this)
        resolver.made = inner.made
        found, order = _named(relation, listed)
    elif isinstance(relation, exp.Table) and isinstance(relation.this, exp.Identifier):
        # Another version of a table may have other columns.
        known = resolver.schema if not relation.args.get("version") and not relation.args.get("when") else {}
        columns = listed or known.get(".".join(p.name for p in relation.parts).lower())
        order = tuple(columns or ())
        found = {c.lower(): c.lower() for c in columns} if columns is not None else None
    else:
        raise Unclear
    new = f"{ALIAS}{resolver.made}"
    resolver.made += 1
    alias.set("this", exp.to_identifier(new))
    return name, _Source(alias=new, columns=found, order=order)


def _named(relation: exp.Subquery, listed: Sequence[str]) -> tuple[dict[str, str] | None, tuple[str, ...]]:
    """The columns of a subquery, with names derived from their content, so that the user's names do not matter."""
    outputs = output_names(relation.this)
    if outputs is None:
        return None, ()
    if listed and len(listed) != len(outputs):
        raise Unclear
    names, select = tuple(listed or outputs), relation.this
    if not isinstance(select, exp.Select) or _reads_own_alias(select):
        return {name.lower(): name.lower() for name in names}, names
    found: dict[str, str] = {}
    projections: dict[str, exp.Expr] = {}
    for name, projection in zip(names, select.expressions, strict=True):
        value = projection.unalias()
        canonical = _INNER + sha256(shown(value).encode("utf-8", "surrogatepass")).hexdigest()[:12]
        found[name.lower()] = canonical
        projections[canonical] = exp.Alias(this=value.copy(), alias=exp.to_identifier(canonical))
    select.set("expressions", list(projections.values()))
    relation.args["alias"].set("columns", None)
    return found, names


def _reads_own_alias(select: exp.Select) -> bool:
    """Whether a name in it may be that of one of its own columns."""
    aliases = {p.alias.lower() for p in select.expressions if isinstance(p, exp.Alias)}
    return any(isinstance(n, exp.Column) and not n.table and n.name.lower() in aliases for n in _own(select, deep=True))


def _own(select: exp.Select, *, deep: bool = False) -> Iterator[exp.Expr]:
    """Columns, and subqueries in expressions, of a SELECT itself, without those of items in FROM."""
    skipped = {id(r) for r in relations(select)}
    waiting: list[exp.Expr] = [select]
    while waiting:
        node = waiting.pop()
        if node is not select and (isinstance(node, exp.Column) or (isinstance(node, exp.Query) and not deep)):
            yield node
            continue
        waiting += [child for child in reversed(list(node.iter_expressions())) if id(child) not in skipped]


def _column(resolver: _Resolver, column: exp.Column, aliases: set[str]) -> None:
    if isinstance(column.this, exp.Star):
        if column.table:
            _qualified(resolver, column)
        return
    name = column.parts[0].name.lower()
    if len(column.parts) > 1 and _qualified(resolver, column):
        return
    sources = resolver.stack[-1]
    clause = column.find_ancestor(exp.Where, exp.Join, exp.Having, exp.Qualify, exp.Order, exp.Select)
    if isinstance(clause, (exp.Where, exp.Join)):
        aliases = set()
    known = [s for s in sources.values() if s.columns is not None and name in s.columns]
    is_open = any(s.columns is None for s in sources.values())
    if known and isinstance(clause, (exp.Having, exp.Qualify, exp.Order)) and name in aliases:
        raise Unclear
    if len(known) == 1:
        _set(column, known[0])
    elif not known and is_open and len(sources) == 1 and len(resolver.stack) == 1 and name not in aliases:
        _set(column, next(iter(sources.values())))
    elif not known and not is_open and sources and name not in aliases:
        _outer(resolver, column, name)
    elif any(name in (s.columns or ()) for around in resolver.stack[:-1] for s in around.values()) or any(s.renames for s in known):
        raise Unclear


def _outer(resolver: _Resolver, column: exp.Column, name: str) -> None:
    """A column of a query around, if nothing in between can have it."""
    for sources in reversed(resolver.stack[:-1]):
        known = [s for s in sources.values() if s.columns is not None and name in s.columns]
        if len(known) == 1:
            _set(column, known[0])
        if known or not sources or any(s.columns is None for s in sources.values()):
            return


def _qualified(resolver: _Resolver, column: exp.Column) -> bool:
    """Whether its first part is the alias of a table; a column with a field is left to `_column`."""
    first, second = column.parts[0].name.lower(), column.parts[1].name.lower()
    for sources in reversed(resolver.stack):
        if first not in sources:
            continue
        source = sources[first]
        if isinstance(column.this, exp.Star):
            column.set("table", exp.to_identifier(source.alias))
        elif source.columns is not None and second not in source.columns:
            raise Unclear
        else:
            _write(column, source, column.parts[1:])
        return True
    return False


def _set(column: exp.Column, source: _Source) -> None:
    _write(column, source, column.parts)


def _write(column: exp.Column, source: _Source, parts: Sequence[exp.Expr]) -> None:
    """`alias.column`, followed by fields of the column as written."""
    name = parts[0].name.lower()
    named = name if source.columns is None else source.columns[name]
    new: exp.Expr = exp.column(named, table=source.alias)
    for part in parts[1:]:
        new = exp.Dot(this=new, expression=part.copy())
    # The name of a projection is that of the result.
    if isinstance(column.parent, exp.Select) and column.arg_key == "expressions":
        new = exp.Alias(this=new, alias=exp.to_identifier(column.name))
    column.replace(new)


def _stars(select: exp.Select, sources: Mapping[str, _Source]) -> None:
    """Expand `*` and `t.*` if all columns are known. Otherwise the result has their names, so that they cannot be replaced."""
    found: list[exp.Expr] = []
    for projection in select.expressions:
        chosen = _starred(projection, sources)
        if chosen is None and not projection.is_star:
            found.append(projection)
        elif chosen is None or any(s.columns is None for s in chosen):
            if any(s.renames for s in sources.values()):
                raise Unclear
            return
        else:
            found += [
                exp.Alias(this=exp.column(s.columns[name.lower()], table=s.alias), alias=exp.to_identifier(name))
                for s in chosen
                for name in s.order
                if s.columns is not None
            ]
    select.set("expressions", found)


def _starred(projection: exp.Expr, sources: Mapping[str, _Source]) -> list[_Source] | None:
    star = projection.this if isinstance(projection, exp.Column) else projection
    if not isinstance(star, exp.Star) or any(star.args.values()):
        return None
    if isinstance(projection, exp.Column):
        source = sources.get(projection.table.lower())
        return [source] if source else None
    return list(sources.values())
