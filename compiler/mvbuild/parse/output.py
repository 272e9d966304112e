"""sqlglot tree -> the names of a query's output columns, and those that it reads from its tables, as far as its text determines them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp


def output_columns(tree: exp.Expr) -> tuple[str, ...] | None:
    """None if Spark determines the names: for a star over a table, a generator or an expression without an alias.

    A star over a CTE has the columns of the CTE: many projects end each query with `SELECT * FROM final`.
    """
    select, visible = _first_select(tree, [])
    while select is not None and (at := _starred(select, visible)) is not None:
        cte = visible[at]
        renamed = _alias_columns(select.args["from_"].this) or _alias_columns(cte)
        if renamed:
            return renamed
        select, visible = _first_select(cte.this, visible[:at])
    names: list[str] = []
    for projection in select.expressions if select is not None else ():
        named = _names(projection)
        if named is None:
            return None
        names += named
    return tuple(names) or None


def _first_select(query: exp.Expr, visible: Sequence[exp.CTE]) -> tuple[exp.Select | None, list[exp.CTE]]:
    """The SELECT that names the columns of a query, and the CTEs that it sees, the nearest last."""
    found = [*visible, *_ctes(query)]
    while isinstance(query, (exp.Subquery, exp.SetOperation)):
        query = query.this
        found += _ctes(query)
    return query if isinstance(query, exp.Select) else None, found


def _ctes(query: exp.Expr) -> Sequence[exp.CTE]:
    clause = query.args.get("with_")
    return clause.expressions if clause is not None else ()


_PLAIN = frozenset("expressions from_ with_ where order limit offset distinct hint qualify".split())
"""Parts of a SELECT that change no column of its star."""


def _starred(query: exp.Select, visible: Sequence[exp.CTE]) -> int | None:
    """The place of the CTE of which `query` is `SELECT * FROM cte`, without another table."""
    source, stars = query.args.get("from_"), query.expressions
    if source is None or len(stars) != 1 or not isinstance(stars[0], exp.Star) or any(stars[0].args.values()):
        return None
    table = source.this
    if not isinstance(table, exp.Table) or any(value and part not in _PLAIN for part, value in query.args.items()):
        return None
    if any(value and part not in ("this", "alias") for part, value in table.args.items()):
        return None
    return next((at for at in reversed(range(len(visible))) if visible[at].alias.lower() == table.name.lower()), None)


def _alias_columns(node: exp.Expr) -> tuple[str, ...]:
    alias = node.args.get("alias")
    return tuple(column.name for column in alias.columns) if isinstance(alias, exp.TableAlias) else ()


def names_read(nodes: Sequence[exp.Expr]) -> tuple[str, ...]:
    """The names of columns, in lower case, without those that the query itself gives to something: its tables must have the rest.

    `nodes`: the tree from the top.
    """
    read, given, relations = list[tuple[str, ...]](), set[str](), set[str]()
    for node in nodes:
        if isinstance(node, exp.Column):
            if isinstance(node.this, exp.Identifier):
                read.append(tuple(part.name.lower() for part in node.parts))
        elif isinstance(node, exp.Alias):
            given.add(node.alias.lower())
        elif isinstance(node, exp.Table):
            relations.add(node.name.lower())
        elif isinstance(node, exp.TableAlias):
            relations.add(node.name.lower())
            given.update(column.name.lower() for column in node.columns)
        elif isinstance(node, (exp.Aliases, exp.Lambda)):
            given.update(identifier.name.lower() for identifier in node.expressions)
    return tuple(sorted({_column_of(parts, relations) for parts in read} - given))


def _column_of(parts: tuple[str, ...], relations: Collection[str]) -> str:
    """The column in a dotted name: what follows is a field, and what is before it is its table, if the query has one of that name."""
    return next((parts[at + 1] for at in range(min(2, len(parts) - 1)) if parts[at] in relations), parts[0])


def _names(projection: exp.Expr) -> tuple[str, ...] | None:
    if isinstance(projection, exp.Alias):
        return (projection.alias,)
    if isinstance(projection, exp.Aliases):
        return tuple(identifier.name for identifier in projection.expressions)
    if isinstance(projection, exp.Column) and not isinstance(projection.this, exp.Star):
        return (projection.name,)
    if isinstance(projection, exp.Dot) and isinstance(projection.expression, exp.Identifier):
        return (projection.expression.name,)
    return None
