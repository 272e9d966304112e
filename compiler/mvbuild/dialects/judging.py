"""one query while it is judged: what is proven, what is refused, where each was written, and the casts that go around its nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.dialects.engine_types import trino_type
from mvbuild.dialects.proven import Proofs
from mvbuild.dialects.signatures import of_cast
from mvbuild.lineage.statement import TypedQuery
from mvbuild.lineage.types import Type
from mvbuild.lineage.values import Relation

_NOT_DETERMINED = "which row comes first among equal ones is not determined"
_ALLOWED: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(("with_", "expressions", "from_", "joins", "where", "group", "having", "distinct")),
    exp.Union: frozenset(("with_", "this", "expression", "distinct")),
    exp.Intersect: frozenset(("with_", "this", "expression", "distinct")),
    exp.Except: frozenset(("with_", "this", "expression", "distinct")),
    exp.Subquery: frozenset(("this", "alias", "with_", "joins")),
    exp.Table: frozenset(("this", "db", "catalog", "alias", "joins")),
    exp.TableAlias: frozenset(("this", "columns")),
    exp.CTE: frozenset(("this", "alias")),
    exp.With: frozenset(("expressions",)),
    exp.Join: frozenset(("this", "on", "side", "kind")),
    exp.Group: frozenset(("expressions",)),
    exp.Distinct: frozenset(("expressions",)),
    exp.Case: frozenset(("this", "ifs", "default")),
    exp.If: frozenset(("this", "true", "false")),
    exp.In: frozenset(("this", "expressions", "query")),
    exp.Between: frozenset(("this", "low", "high")),
    exp.Cast: frozenset(("this", "to", "_type", "safe")),
    exp.TryCast: frozenset(("this", "to", "_type", "safe")),
    exp.Window: frozenset(("this", "partition_by", "order", "over")),
    exp.Filter: frozenset(("this", "expression")),
    exp.Interval: frozenset(("this", "unit")),
}
"""Clauses that are fully understood; a node with any other clause is refused."""
_CLAUSES: Mapping[str, str] = {
    "using": "JOIN ... USING",
    "method": "NATURAL and ASOF joins",
    "limit": "LIMIT: which rows it takes is not determined",
    "offset": "OFFSET: which rows it leaves out is not determined",
    "qualify": "QUALIFY",
    "laterals": "LATERAL VIEW",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "version": "time travel",
    "recursive": "WITH RECURSIVE",
    "rollup": "ROLLUP",
    "cube": "CUBE",
    "grouping_sets": "GROUPING SETS",
    "all": "GROUP BY ALL",
    "windows": "named windows",
    "alias": "named windows",
    "first": "named windows",
    "spec": "ROWS and RANGE: " + _NOT_DETERMINED,
    "by_name": "UNION BY NAME",
    "escape": "ESCAPE",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """An unproven expression, at offsets of the definition."""

    what: str
    start: int
    end: int
    help: str = ""


class Refused(Exception):
    def __init__(self, node: exp.Expr, what: str, help: str = "") -> None:
        super().__init__(what)
        self.node, self.what, self.help = node, what, help


@dataclass(slots=True, kw_only=True)
class Judging:
    """One query, while it is judged and afterwards."""

    typed: TypedQuery
    proofs: Proofs
    query: Callable[[Judging, exp.Expr], None]
    """Judges a subquery."""
    refusals: list[Refusal] = field(default_factory=list)
    unknown: list[Refusal] = field(default_factory=list)
    """What may be proven once the types are known."""
    used: set[str] = field(default_factory=set)
    """The signatures of everything in the query."""
    columns_of_from: set[int] = field(default_factory=set)
    """The attributes of columns of FROM."""
    in_exists: bool = False

    # Places

    def place(self, node: exp.Expr) -> tuple[int, int]:
        """Where an expression was written, from the function's name on."""
        text = self.typed.query.sql.text
        found = _written_at(node)
        if found is None:
            name = node.sql_name() if isinstance(node, exp.Func) else node.key
            match = re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)
            if match:
                return match.span()
            return self.place(node.parent) if node.parent is not None else (0, len(text))
        is_bare = isinstance(node, exp.Func) and "start" not in node.meta
        before = re.search(r"(\w+\s*\([^()']*|\b(DATE|TIMESTAMP\w*)\s*)$", text[: found[0]], re.IGNORECASE) if is_bare else None
        return (before.start(), found[1]) if before and not isinstance(node, exp.Connector) else found

    def refuse(self, node: exp.Expr, what: str, help: str = "") -> None:
        self.refusals.append(Refusal(what, *self.place(node), help))

    # Proofs

    def use(self, signature: str, node: exp.Expr, result: Type | None = None, *, wrap: bool = True) -> None:
        """The engine computes `node`: refuse it if it is not proven to give the same result, and cast it if its type differs."""
        if "?" in signature:
            if self.proofs.may_have(signature):
                self.unknown.append(Refusal(f"`{signature}`", *self.place(node)))
            else:
                self.refuse(node, f"`{signature.replace('?', '…')}`")
            return
        self.used.add(signature)
        proof = self.proofs.proven.get(signature)
        if proof is None:
            difference = self.proofs.differs.get(signature)
            self.refuse(node, f"`{signature}`" + (f" ({difference})" if difference else ""))
        elif proof.cast and wrap:
            self.cast(node, result if result is not None else self.type_of(node))

    def cast(self, node: exp.Expr, type_: Type | None) -> None:
        name = trino_type(type_)
        if name is None:
            self.unknown.append(Refusal("an expression whose type is not known", *self.place(node)))
            return
        made = exp.Cast(this=exp.Null(), to=exp.DataType.build(name, dialect="trino"))
        node.replace(made)
        made.set("this", node)

    def coerce(self, node: exp.Expr, target: Type | None) -> None:
        """Write out a cast that Spark makes implicitly."""
        type_ = self.type_of(node)
        if type_ == target or type_ == "void" or target is None:
            return
        self.use(of_cast(type_, target), node, wrap=False)
        self.cast(node, target)

    def type_of(self, node: exp.Expr) -> Type | None:
        return self.typed.notes.types.get(id(node))

    def relation_of(self, node: exp.Expr) -> Relation | None:
        """In a chain of set operations only the last one has a note; all have the same types."""
        found = self.typed.notes.relations.get(id(node))
        return self.relation_of(node.this) if found is None and isinstance(node, exp.SetOperation) else found

    def allowed(self, node: exp.Expr) -> None:
        """Anything that is not understood is refused."""
        for name, value in node.args.items():
            if value and name not in _ALLOWED[type(node)]:
                raise Refused(value if isinstance(value, exp.Expr) else node, _CLAUSES.get(name, f"`{name.strip('_').upper()}`"))


def _written_at(node: exp.Expr) -> tuple[int, int] | None:
    """As far as names and literals show. Types that were put around it were parsed elsewhere."""
    if "start" in node.meta:
        return node.meta["start"], node.meta["end"] + 1
    nodes = node.walk(prune=lambda n: isinstance(n, exp.DataType))
    places = [(n.meta["start"], n.meta["end"] + 1) for n in nodes if "start" in n.meta]
    return (min(p[0] for p in places), max(p[1] for p in places)) if places else None


def words(node: exp.Expr) -> str:
    """A description of a node that has no other name."""
    return node.key.upper()
