"""SQL with ids for tables -> Canonical: a tree that is equal for queries with the same meaning, as far as that is certain.

CTEs become subqueries, tables get aliases in order, columns the alias of their table wherever only one can have them, and subqueries that
only choose, compute or filter are merged into the query around them. A part that is not understood stays as written, so that it is equal
only to itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from mvbuild.equivalence.merge import merged
from mvbuild.equivalence.resolve import Schema, Unclear, resolved
from mvbuild.equivalence.tidy import tidy
from mvbuild.parse.determinism import nondeterministic_word
from mvbuild.parse.dialect import parse, tokenize

_LEFT_AS_WRITTEN = (exp.Lateral, exp.Unnest, exp.Pivot, exp.TableSample, exp.Limit, exp.Fetch, exp.Offset, exp.Values, exp.Command)
_LONGEST = 200_000
"""The limit of the tree: CTEs that each read the previous one twice grow by powers of two when they are inlined."""
_PASSES = 3
"""Merging combines conditions and makes names free, so names are derived from their content again, and tables are numbered again."""


class Unreadable(Exception):
    """A query that sqlglot does not parse as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canonical:
    """A query to compare. `is_whole`: no part of it was left as written."""

    tree: exp.Expr
    is_whole: bool


def canonical(sql: str, schema: Mapping[str, Schema] | None = None) -> Canonical:
    """`schema`: id of a table -> its columns, if they are known. Raises Unreadable."""
    tree = _parsed(sql)
    if _is_opaque(tree, sql):
        return Canonical(tree=tidy(tree), is_whole=False)
    try:
        _inline(tree)
        for _ in range(_PASSES):
            resolved(tree, schema or {})
            tree = merged(tidy(tree))
    except (Unclear, SqlglotError):
        return Canonical(tree=tidy(_parsed(sql)), is_whole=False)
    return Canonical(tree=tree, is_whole=True)


def _parsed(sql: str) -> exp.Expr:
    try:
        tokens = tokenize(sql)
        while tokens and tokens[-1].token_type.name == "SEMICOLON":
            tokens.pop()
        trees = parse(tokens, sql)
    except (SqlglotError, RecursionError) as exc:
        raise Unreadable from exc
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise Unreadable
    return trees[0]


def _is_opaque(tree: exp.Expr, sql: str) -> bool:
    if nondeterministic_word(sql, strictly=True):
        return True
    if any(True for _ in tree.find_all(*_LEFT_AS_WRITTEN)):
        return True
    return any(with_.args.get("recursive") for with_ in tree.find_all(exp.With))


def _inline(tree: exp.Expr) -> None:
    """Replace the name of every CTE by its query, from the inside out; sqlglot's scopes decide what a name means."""
    scopes: Sequence[Scope] = traverse_scope(tree)
    size = 0
    for scope in scopes:
        known = {name.lower(): source for name, source in scope.cte_sources.items()}
        for node in list(scope.tables):
            source = known.get(node.name.lower()) if not node.args.get("db") else None
            if isinstance(source, Scope) and not node.args.get("joins"):
                size += len(source.expression.sql(dialect="spark"))
                if size > _LONGEST:
                    raise Unclear
                _put(node, source, node.alias_or_name)
    names = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for query in list(tree.find_all(exp.Query)):
        query.set("with_", None)
    if any(table.name.lower() in names for table in tree.find_all(exp.Table)):
        # Its meaning would have been lost with the CTE.
        raise Unclear


def _put(table: exp.Table, source: Scope, name: str) -> None:
    cte = source.expression.parent
    columns = cte.args["alias"].args.get("columns") if isinstance(cte, exp.CTE) and cte.args.get("alias") else None
    alias = table.args.get("alias")
    own = alias.args.get("columns") if alias else None
    body = source.expression.copy()
    body.set("with_", None)
    named = exp.TableAlias(this=exp.to_identifier(name), columns=[c.copy() for c in own or columns or ()])
    table.replace(exp.Subquery(this=body, alias=named))
