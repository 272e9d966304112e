"""PIVOT or UNPIVOT + the Tables it applies to -> Tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from mvbuild.lineage.binding import Binding, place_of
from mvbuild.lineage.expressions import value
from mvbuild.lineage.scopes import Scope, Source, Tables
from mvbuild.lineage.types import common
from mvbuild.lineage.values import NOTHING, Relation, Value, attributes, joined


def pivoted(node: exp.Expr, tables: Tables, scope: Scope, binding: Binding) -> Tables:
    """The columns of one clause, under its alias or under the names of the tables."""
    seen = replace(scope, tables=tables)
    relation = _unpivot(node, tables, seen, binding) if node.args.get("unpivot") else _pivot(node, tables, seen, binding)
    alias = node.args.get("alias")
    if isinstance(alias, exp.TableAlias) and isinstance(alias.this, exp.Identifier):
        return Tables.of(Source(((alias.this.name.lower(),),), relation))
    spellings = tuple(s for source in tables.sources for s in source.spellings)
    return Tables.of(Source(spellings, relation))


def _pivot(node: exp.Expr, tables: Tables, scope: Scope, binding: Binding) -> Relation:
    """Columns that neither the aggregates nor FOR name are groups; then each value gets one column per aggregate."""
    keys = [value(field.this, scope, binding) for field in node.args.get("fields") or ()]
    aggregates = [(a.alias or None, value(a.this if isinstance(a, exp.Alias) else a, scope, binding)) for a in node.expressions]
    named = {p.name.lower() for part in (*node.expressions, *(f.this for f in node.args["fields"])) for p in part.find_all(exp.Column)}
    groups = tuple(c for c in tables.star if c.key not in named)
    decided = joined((*keys, *(g.value for g in groups)))
    values = [v for field in node.args["fields"] for v in field.expressions]
    made = []
    for given in values:
        for alias, aggregate in aggregates:
            name = _pivot_name(given, alias, len(aggregates), len(node.args["fields"]))
            found = joined((aggregate, *keys), aggregate.type)
            made.append((name, found, place_of(given)))
    return Relation((*groups, *attributes(made)), tables.rest, tables.rows | decided.bases)


def _pivot_name(given: exp.Expr, aggregate: str | None, aggregates: int, fields: int) -> str | None:
    """Spark's name for the column of a value; None if the text of the query is not enough to know it."""
    if isinstance(given, (exp.PivotAlias, exp.Alias)):
        name: str | None = given.args["alias"].name
    else:
        name = given.name if isinstance(given, exp.Literal) and (given.is_string or given.is_int) and fields == 1 else None
    if aggregates == 1 or name is None:
        return name
    return f"{name}_{aggregate}" if aggregate else None


def _unpivot(node: exp.Expr, tables: Tables, scope: Scope, binding: Binding) -> Relation:
    """Columns that IN does not name remain; the name column and the value columns follow."""
    field = node.args["fields"][0]
    targets = _parts(node.expressions[0])
    choices = [_parts(c.this if isinstance(c, (exp.PivotAlias, exp.Alias)) else c) for c in field.expressions]
    found = [[value(part, scope, binding) for part in choice] for choice in choices]
    if any(len(choice) != len(targets) for choice in choices):
        return Relation((), (None,), tables.rows)
    named = {part.name.lower() for choice in choices for part in choice}
    kept = tuple(c for c in tables.star if c.key not in named)
    columns: list[tuple[str | None, Value, tuple[int, int] | None]] = [
        (field.this.name, Value("string", NOTHING), place_of(field.this)),
        *((t.name, _together([f[i] for f in found]), place_of(t)) for i, t in enumerate(targets)),
    ]
    return Relation((*kept, *attributes(columns)), tables.rest, tables.rows)


def _together(values: Sequence[Value]) -> Value:
    return joined(values, common(v.type for v in values))


def _parts(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node.this if isinstance(node, exp.Paren) else node]
