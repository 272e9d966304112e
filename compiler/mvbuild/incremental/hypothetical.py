"""Shape + which tables would change, and how -> Answers: the results of strategies, before anything has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import leaves
from mvbuild.incremental.kinds import Kind, kind_of_type
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.rewrite import Exchange, OverwritePartitions, Rewrite, StrategyInput
from mvbuild.incremental.shape import Shape, with_lifted_readings
from mvbuild.incremental.strategies import STRATEGIES
from mvbuild.ports.states import Partition

Kinds = Literal["inserts", "deletes"]
"""Rows are only added; or rows are added and removed, as by updates."""
_TYPES: Mapping[Kind, str] = {"integer": "long", "decimal": "decimal(20, 2)", "float": "double"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of one strategy. `refused` is None if it can be used."""

    strategy: str
    refused: Refused | None
    keys: tuple[str, ...] = ()
    """The columns of the storage by which it finds what to compute again."""


def answers(
    shape: Shape,
    change: Kinds,
    *,
    changed: frozenset[int] | None = None,
    types: Mapping[str, Any] | None = None,
    partition_by: tuple[Partition, ...] = (),
    float_tolerance: float | None = None,
    has_children: bool = False,
    clock: Mapping[str, str] | None = None,
    strategies: Iterable[str] = STRATEGIES,
) -> Iterator[Answer]:
    """Each is found when it is asked for. `changed`: the leaves that change, by default all. `types` of the storage; guessed if there is
    none yet. `clock`: the earlier values of what the query reads of it, where they differ. `strategies`: those whose answers are wanted."""
    changed = leaves(shape.root) if changed is None else changed
    case = StrategyInput(
        shape=with_lifted_readings(shape, clock) if clock else shape,
        plus=changed,
        minus=changed if change == "deletes" else frozenset(),
        types=guessed_types(shape) if types is None else types,
        partition_by=partition_by,
        float_tolerance=float_tolerance,
        has_children=has_children,
        clock=clock or {},
    )
    return (_answer(name, case) for name in strategies)


def guessed_types(shape: Shape) -> dict[str, str]:
    """Types of the result, as far as strategies need them."""
    return {name: _TYPES.get(kind_of_type(shape.types.get(unique)), "string") for unique, name in shape.outputs}


def keys_of(rewrite: Rewrite) -> tuple[str, ...]:
    """The columns of the storage by which a rewrite finds rows."""
    if isinstance(rewrite.write, OverwritePartitions):
        return tuple(dict.fromkeys(stored for stored, _, _ in rewrite.write.partitions))
    return tuple(stored for stored, _ in rewrite.write.columns) if isinstance(rewrite.write, Exchange) else ()


def _answer(name: str, case: StrategyInput) -> Answer:
    try:
        made = STRATEGIES[name](case)
    except Refused as exc:
        return Answer(strategy=name, refused=exc)
    return Answer(strategy=name, refused=None, keys=keys_of(made))
