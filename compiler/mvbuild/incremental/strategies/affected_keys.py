"""StrategyInput -> Exchange: the rows of the result whose keys a change can affect are computed again.

Any columns of the result can be the keys: rows with other values than the added and removed rows are the same as before. The choice of
columns is a matter of cost: their values must be found without computing the result.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    Relation,
    Scalar,
    Scan,
    Sessions,
    SetOperation,
    Union,
    Unpivot,
    Window,
    column,
    names_in,
    walk,
)
from mvbuild.incremental.delta import Cte, Deltas
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.restrict import Key, equal_columns, partition_columns, restricted
from mvbuild.incremental.rewrite import NOTHING, Exchange, Rewrite, StrategyInput
from mvbuild.incremental.row_order import require_local

NAME = "affected-keys"


def rewrite(case: StrategyInput) -> Rewrite:
    """For a query whose result has columns by which a part of the query is local.

    >>> from mvbuild.incremental.samples import case, formula
    >>> found = rewrite(case("SELECT customer_id, max(amount) AS high FROM {orders} GROUP BY customer_id"))
    >>> formula(found.write.rows)
    'aggregate[customer_id, MAX(amount)](semi join[customer_id <=> keys_0_0k](orders, keys_0))'
    >>> formula(found.write.keys.relation)
    'distinct(orders.plus)'
    """
    if not case.deltas().changes(case.shape.root):
        return Rewrite(NAME, NOTHING, outputs=case.shape.outputs)
    case.require_comparable()
    keys, ctes = chosen_keys(case)
    table = ctes[-1].ref
    pairs = [Key(column(name), found) for name, found in zip(keys, table.columns, strict=True)]
    rows = restricted(case.shape.root, pairs, table)
    require_local(rows, table, case.shape.types)
    outputs = dict(case.shape.outputs)
    columns = tuple((outputs[name], found) for name, found in zip(keys, table.columns, strict=True))
    return Rewrite(NAME, Exchange(rows, ctes[-1], columns), ctes, case.shape.outputs)


def chosen_keys(case: StrategyInput) -> tuple[tuple[str, ...], tuple[Cte, ...]]:
    """Columns of the root, and the statements the last of which has their values; the cheapest possible ones."""
    candidates = list(dict.fromkeys(_candidates(case)))
    if not candidates:
        raise Refused("no-key", "no output column identifies the rows that a change affects")
    found: list[_Choice] = []
    refusal: Refused | None = None
    for keys in candidates:
        deltas = case.deltas()
        try:
            deltas.keys_cte(case.shape.root, [column(name) for name in keys])
        except Refused as exc:
            refusal = refusal or exc
            continue
        found.append(_Choice(keys=keys, ctes=tuple(deltas.ctes), scans=_scans(deltas.ctes)))
    if not found:
        assert refusal is not None
        raise refusal
    best = min(found, key=lambda c: (c.scans, -len(c.keys)))
    return best.keys, best.ctes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    keys: tuple[str, ...]
    ctes: tuple[Cte, ...]
    scans: int
    """How many scans of whole tables it takes to find the keys."""


def _scans(ctes: list[Cte]) -> int:
    return sum(isinstance(n, Scan) and n.version in ("new", "old") for cte in ctes for n in walk(cte.relation))


def _candidates(case: StrategyInput) -> Iterator[tuple[str, ...]]:
    """Sets of output columns by which a part of the query is local, and each of those columns alone."""
    root = case.shape.root
    shown = {name for name, _ in case.shape.outputs}
    for local in _local(root, case.deltas()):
        visible = tuple(name for name in dict.fromkeys(local) if name in shown)
        if visible:
            yield visible
            if len(visible) > 1:
                yield from ((name,) for name in visible)


def _local(relation: Relation, deltas: Deltas) -> Iterator[tuple[str, ...]]:
    """The local columns of the operators below, with their names here."""
    if isinstance(relation, Project):
        shown: dict[str, str] = {}
        for item in relation.items:
            if isinstance(item.expression, exp.Column):
                shown.setdefault(item.expression.name, item.name)
        for local in _local(relation.child, deltas):
            visible = tuple(shown[name] for name in local if name in shown)
            if visible:
                yield visible
        yield _common_values(relation)
        return
    if isinstance(relation, Aggregate | Sessions):
        yield tuple(item.name for item in relation.keys)
        return
    if isinstance(relation, Window):
        yield partition_columns(relation)
        return
    if isinstance(relation, Distinct | SetOperation | Scan):
        yield relation.columns
        return
    if isinstance(relation, Union):
        yield relation.columns
        return
    if isinstance(relation, Join):
        yield from _of_join(relation, deltas)
        return
    if isinstance(relation, Unpivot):
        yield relation.columns
        return
    if isinstance(relation, Filter | Scalar):
        yield from _local(relation.children[0], deltas)


def _common_values(project: Project) -> tuple[str, ...]:
    """Outputs coalesce(l, r) of a FULL JOIN by l = r."""
    below = project.child
    while isinstance(below, Filter):
        below = below.child
    if not isinstance(below, Join) or below.kind != "full":
        return ()
    values = [exp.Coalesce(this=column(left), expressions=[column(right)]) for left, right in equal_columns(below)]
    return tuple(item.name for item in project.items if item.expression in values)


def _of_join(join: Join, deltas: Deltas) -> Iterator[tuple[str, ...]]:
    if join.kind == "full":
        return
    if join.on is not None:
        yield tuple(sorted(names_in(join.on) & set(join.columns)))
    yield from _local(join.left, deltas)
    if join.kind == "inner":
        yield from _local(join.right, deltas)
    yield join.columns
