"""Binding: what the modules that walk one query share, and the Findings that they leave there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from mvbuild.lineage.scopes import Meaning, Scope
from mvbuild.lineage.types import Type
from mvbuild.lineage.values import Base, Finding, Relation


@dataclass(slots=True)
class Notes:
    """What binding learned of each node of a tree, by the `id` of the node: it counts as long as somebody holds the tree."""

    types: dict[int, Type | None] = field(default_factory=dict)
    """Of expressions."""
    names: dict[int, Meaning] = field(default_factory=dict)
    """Of columns: what each name means."""
    relations: dict[int, Relation] = field(default_factory=dict)
    """Of queries."""


@dataclass(slots=True)
class Binding:
    """One query while it is bound."""

    query: Callable[[exp.Expr, Scope, Binding], Relation]
    """Binds a subquery."""
    table: Callable[[exp.Table], tuple[Relation, tuple[tuple[str, ...], ...]] | None]
    """What a table that is no CTE means, and how its columns can be qualified."""
    findings: dict[tuple[str, int], Finding] = field(default_factory=dict)
    rows: set[Base] = field(default_factory=set)
    """What decides on the rows of the SELECT that is being bound."""
    notes: Notes | None = None
    """Where what is learned of each node goes, if anybody wants it."""

    def find(self, code: str, message: str, node: exp.Expr, help: str = "") -> None:
        """Nothing is said where the parser kept no place: a finding must point at what is meant."""
        self.find_at(code, message, place_of(node), help)

    def find_at(self, code: str, message: str, place: tuple[int, int] | None, help: str = "") -> None:
        if place is not None:
            self.findings.setdefault((code, place[0]), Finding(code, message, *place, help))


def place_of(node: exp.Expr) -> tuple[int, int] | None:
    """[start, end) of an expression as far as its names tell."""
    if "start" in node.meta:
        return node.meta["start"], node.meta["end"] + 1
    places = [(n.meta["start"], n.meta["end"] + 1) for n in node.walk() if "start" in n.meta]
    return (min(p[0] for p in places), max(p[1] for p in places)) if places else None
