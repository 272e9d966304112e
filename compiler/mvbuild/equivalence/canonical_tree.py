"""SQL -> Canonical: a tree that is equal for queries with the same meaning, as far as that is certain.

CTEs become subqueries, tables get aliases in order, columns the alias of their table wherever only one can have them, and subqueries that
only choose, compute or filter are merged into the query around them. A query that is not understood stays as written, so that it is equal
only to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mvbuild.dataclass import dataclass
from mvbuild.equivalence.inlined import Unreadable, inlined, parsed
from mvbuild.equivalence.merge import merged
from mvbuild.equivalence.resolve import Schema, Unclear, name_of, resolved
from mvbuild.equivalence.tidy import shown, tidy
from mvbuild.parse.determinism import nondeterministic_word

_LEFT_AS_WRITTEN = (exp.Lateral, exp.Unnest, exp.Pivot, exp.TableSample, exp.Limit, exp.Fetch, exp.Offset, exp.Values, exp.Command)
_WITH_FIELDS = (exp.Struct, exp.Tuple, exp.ArraysZip)
_PASSES = 3
"""Merging combines conditions and makes names free, so names are derived from their content again, and tables are numbered again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canonical:
    """A query to compare. `is_whole`: no part of it was left as written."""

    tree: exp.Expr
    is_whole: bool
    unnamed: tuple[str, ...]
    """Columns without a name, as written: Spark derives their names from the text."""

    def is_same(self, other: Canonical) -> bool:
        return (self.is_whole, self.unnamed) == (other.is_whole, other.unnamed) and shown(self.tree) == shown(other.tree)


def canonical(sql: str, schema: Mapping[str, Schema] | None = None) -> Canonical:
    """`schema`: full name of a table in any case -> its columns, if they are known. Raises one of `inlined.FAILURES`."""
    _, tree = parsed(sql)
    unnamed = tuple(sorted(_unnamed(tree)))
    if _is_opaque(tree, sql):
        return Canonical(tree=tidy(tree), is_whole=False, unnamed=unnamed)
    try:
        _, whole = parsed(inlined(sql))
        for _ in range(_PASSES):
            resolved(whole, schema or {})
            whole = merged(tidy(whole))
    except (Unclear, Unreadable, SqlglotError):
        return Canonical(tree=tidy(tree), is_whole=False, unnamed=unnamed)
    return Canonical(tree=whole, is_whole=True, unnamed=unnamed)


def _unnamed(tree: exp.Expr) -> Iterator[str]:
    for select in tree.find_all(exp.Select):
        for projection in select.expressions:
            if not projection.is_star and not name_of(projection):
                copy = projection.copy()
                for column in copy.find_all(exp.Column):
                    column.set("table", None)
                yield copy.sql(dialect="spark", comments=False)


def _names_fields(node: exp.Expr) -> bool:
    """Whether names of columns become names of fields, or their order that of arguments: `(a, b)`, `struct(*)`, `hash(*)`."""
    if isinstance(node, exp.Star):
        around = node.parent.parent if isinstance(node.parent, exp.Column) else node.parent
        return not isinstance(around, exp.Select) and not (isinstance(around, exp.Count) and around is node.parent)
    if isinstance(node, exp.Struct):
        return any(not isinstance(field, exp.PropertyEQ) for field in node.expressions)
    return isinstance(node, exp.ArraysZip) or node.find_ancestor(exp.Group, exp.Select) is node.find_ancestor(exp.Select)


def _is_opaque(tree: exp.Expr, sql: str) -> bool:
    if nondeterministic_word(sql, strictly=True):
        return True
    if any(True for _ in tree.find_all(*_LEFT_AS_WRITTEN)) or any(map(_names_fields, tree.find_all(*_WITH_FIELDS, exp.Star))):
        return True
    return any(with_.args.get("recursive") for with_ in tree.find_all(exp.With))
