"""Binding: what the modules that walk one query share, and the Findings that they collect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.lineage.scopes import Meaning, Scope
from mvbuild.lineage.types import Type
from mvbuild.lineage.values import Base, Finding, Relation


@dataclass(slots=True)
class Notes:
    """What binding found out about each node of a tree, by the `id` of the node. It is valid as long as the tree is referenced."""

    types: dict[int, Type | None] = field(default_factory=dict)
    """The types of expressions."""
    names: dict[int, Meaning] = field(default_factory=dict)
    """The meaning of each column name."""
    relations: dict[int, Relation] = field(default_factory=dict)
    """The columns of queries."""


@dataclass(slots=True)
class Binding:
    """The state of binding one query."""

    query: Callable[[exp.Expr, Scope, Binding], Relation]
    """Binds a subquery."""
    table: Callable[[exp.Table], tuple[Relation, tuple[tuple[str, ...], ...]] | None]
    """The meaning of a table that is not a CTE, and how its columns can be qualified."""
    findings: dict[tuple[str, int], Finding] = field(default_factory=dict)
    rows: set[Base] = field(default_factory=set)
    """The columns that decide the rows of the SELECT being bound."""
    notes: Notes | None = None
    """Receives what is found out about each node, if the caller asked for it."""

    def find(self, code: str, message: str, node: exp.Expr, help: str = "") -> None:
        """Add a finding. It is dropped if the parser kept no position, because a finding must point at its cause."""
        self.find_at(code, message, place_of(node), help)

    def find_at(self, code: str, message: str, place: tuple[int, int] | None, help: str = "") -> None:
        if place is not None:
            self.findings.setdefault((code, place[0]), Finding(code, message, *place, help))


def place_of(node: exp.Expr) -> tuple[int, int] | None:
    """[start, end) of an expression, as far as the positions of its names are known."""
    if "start" in node.meta:
        return node.meta["start"], node.meta["end"] + 1
    places = [(n.meta["start"], n.meta["end"] + 1) for n in node.walk() if "start" in n.meta]
    return (min(p[0] for p in places), max(p[1] for p in places)) if places else None
