"""StrategyInput -> OverwritePartitions: the partitions of the storage that a change can affect are computed again as a whole."""

from __future__ import annotations

from sqlglot import exp

from mvbuild.incremental.algebra import Distinct, Item, Relation, column, union
from mvbuild.incremental.delta import Cte
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.restrict import Key, restricted
from mvbuild.incremental.rewrite import OverwritePartitions, Rewrite, StrategyInput
from mvbuild.incremental.row_order import require_local

NAME = "partitions"
TRUNCATED = {"identity": None, "day": None, "month": "MM", "year": "YEAR"}
"""Transforms whose partitions can be selected exactly by a condition on the column -> the unit that a date is truncated to."""
NAMED_TYPES = ("int", "long", "string", "date")


def rewrite(case: StrategyInput) -> Rewrite:
    """For a partition spec whose fields are all made from columns of the result, by a transform that a condition can express.

    >>> from mvbuild.incremental.samples import case, formula
    >>> from mvbuild.ports.states import Partition
    >>> fields = (Partition(column="status", transform="identity"),)
    >>> write = rewrite(case("SELECT status, min(amount) AS low FROM {orders} GROUP BY status", partition_by=fields)).write
    >>> formula(write.rows)
    'aggregate[status, MIN(amount)](semi join[status <=> part_0k](orders, partitions))'
    >>> write.partitions
    (('status', 'identity', 'part_0k'),)
    """
    if not case.partition_by:
        raise Refused("no-partitions", "the storage is not partitioned")
    by_output = {output: name for name, output in case.shape.outputs}
    values: list[exp.Expr] = []
    fields: list[tuple[str, str]] = []
    for field in case.partition_by:
        type_ = case.types.get(field.column)
        if field.transform not in TRUNCATED or type_ not in NAMED_TYPES or (field.transform != "identity" and type_ != "date"):
            raise Refused("no-partitions", f"partitions by {field.transform}({field.column}) cannot be named by a condition")
        values.append(partition_value(column(by_output[field.column]), field.transform))
        fields.append((field.column, field.transform))
    deltas = case.deltas()
    found = deltas.changed_keys(case.shape.root, tuple(Item(f"part_{at}k", value) for at, value in enumerate(values)))
    cte = Cte("partitions", Distinct(_union(found)))
    keys = [Key(value, name) for value, name in zip(values, cte.relation.columns, strict=True)]
    rows = restricted(case.shape.root, keys, cte.ref)
    require_local(rows, cte.ref, case.shape.types)
    named = tuple((own, transform, name) for (own, transform), name in zip(fields, cte.relation.columns, strict=True))
    return Rewrite(NAME, OverwritePartitions(rows, cte, named), (*deltas.ctes, cte), case.shape.outputs)


def partition_value(value: exp.Expr, transform: str) -> exp.Expr:
    """The first day of the partition, or the value itself."""
    unit = TRUNCATED[transform]
    if unit is None:
        return value
    return exp.Cast(this=exp.Anonymous(this="trunc", expressions=[value, exp.Literal.string(unit)]), to=exp.DataType.build("date"))


def _union(parts: tuple[Relation, ...]) -> Relation:
    if not parts:
        raise Refused("no-key", "no partition column identifies the rows that a change affects")
    return union(parts)
