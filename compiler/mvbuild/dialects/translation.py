"""a definition + the columns of what it reads -> its SQL for an engine, or what prevents it, with its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from mvbuild.dataclass import dataclass
from mvbuild.dialects.engine_types import trino_type
from mvbuild.dialects.judging import Judging, Refusal
from mvbuild.dialects.proven import Proofs
from mvbuild.dialects.queries import judged
from mvbuild.lineage.statement import Input, TypedQuery, typed_query
from mvbuild.lineage.types import stored
from mvbuild.parse.model import Query

_RELATION = "mv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """`sql` is None if it cannot be written: because of `refusals`, or only because of types that are `unknown`."""

    sql: str | None
    refusals: tuple[Refusal, ...] = ()
    unknown: tuple[Refusal, ...] = ()
    used: frozenset[str] = frozenset()


def translate(query: Query, inputs: Sequence[Input], catalog: str, proofs: Proofs, *, is_stored: bool = True) -> Translation:
    """`inputs`: one for each of `query.reads`. With `is_stored` the rows go through a table, which has fewer types than Spark."""
    try:
        typed = typed_query(query, inputs)
        if typed is None:
            return _refused("this query", query)
        if problem := _strip_catalog(typed.tree, catalog):
            return _refused(problem, query)
        found = judged(typed, proofs)
        columns = _output_types(typed, found, is_stored=is_stored)
        if columns is None or found.refusals or found.unknown:
            return Translation(sql=None, refusals=_once(found.refusals), unknown=_once(found.unknown), used=frozenset(found.used))
        sql = _with_types(typed.tree, columns).sql("trino", comments=False, identify=True, unsupported_level=ErrorLevel.RAISE)
    except (SqlglotError, RecursionError) as exc:
        return _refused(str(exc).splitlines()[0], query)
    return Translation(sql=sql, used=frozenset(found.used))


def _once(refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    return tuple(sorted(dict.fromkeys(refusals), key=lambda r: (r.start, r.what)))


def _refused(what: str, query: Query) -> Translation:
    return Translation(sql=None, refusals=(Refusal(what, 0, len(query.sql.text)),))


def _output_types(typed: TypedQuery, found: Judging, *, is_stored: bool) -> list[tuple[str, str]] | None:
    """Name and type of each column of the view."""
    columns: list[tuple[str, str]] = []
    relation = typed.relation
    for column in relation.columns:
        type_ = stored(column.value.type) if is_stored else column.value.type
        name, start_end = trino_type(type_), column.place or (0, len(typed.query.sql.text))
        if column.name is None or name is None:
            where = found.unknown if type_ is None else found.refusals
            where.append(Refusal(f"the type of the column '{column.name}'", *start_end))
        else:
            columns.append((column.name, name))
    if not relation.is_closed:
        found.unknown.append(Refusal("columns that are not known", 0, len(typed.query.sql.text)))
        return None
    return columns


def _with_types(tree: exp.Expr, columns: Sequence[tuple[str, str]]) -> exp.Expr:
    """The query, with each column cast to the type that the view declares: an engine that finds another type refuses to read the view."""
    names = [exp.to_identifier(name, quoted=True) for name, _ in columns]
    casts = [
        exp.alias_(exp.Cast(this=exp.column(name.copy()), to=exp.DataType.build(type_, dialect="trino")), name.copy())
        for name, (_, type_) in zip(names, columns, strict=True)
    ]
    inner = tree if isinstance(tree, exp.Subquery) and not tree.alias else exp.Subquery(this=tree)
    inner.set("alias", exp.TableAlias(this=exp.to_identifier(_RELATION), columns=names))
    return exp.Select(expressions=casts).from_(inner)


def _strip_catalog(tree: exp.Expr, catalog: str) -> str | None:
    """Remove the catalog from names, because each engine calls it differently. A view's names are completed with the catalog that contains
    it."""
    for table in tree.find_all(exp.Table):
        parts = table.parts
        if len(parts) > 3:
            return f"other engines have no nested namespaces, as in {'.'.join(p.name for p in parts)}"
        if len(parts) == 3 and parts[0].name != catalog:
            return f"{'.'.join(p.name for p in parts)} is in another catalog than the view"
        table.set("catalog", None)
    for column in tree.find_all(exp.Column):
        column.set("catalog", None)
    return None
