"""Shape + names of the tables -> Operators: the query as text, one line per operator, with the operators below indented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import (
    Aggregate,
    Distinct,
    Expand,
    Explode,
    Filter,
    Item,
    Join,
    Limit,
    Project,
    Recursion,
    Ref,
    Relation,
    Scalar,
    Scan,
    Sessions,
    SetOperation,
    TimeWindow,
    Union,
    Unpivot,
    Window,
    conjuncts,
    walk,
)
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.restrict import partition_columns
from mvbuild.incremental.shape import Shape, plain_name

_LONGEST = 100
"""The longest text shown for one expression."""
_JOINS: Mapping[str, str] = {
    "inner": "inner join",
    "left": "left join",
    "full": "full join",
    "semi": "semi join",
    "anti": "anti join",
    "mark": "left rows, each marked by whether it matches",
    "null-aware-anti": "anti join (NOT IN)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A line of the outline."""

    depth: int
    text: str


def outline(shape: Shape, tables: Sequence[str]) -> tuple[Operator, ...]:
    """`tables`: the name of each leaf."""
    return tuple(_Outline(shape=shape, tables=tables).lines(pruned(shape.root), 0))


@dataclass
class _Outline:
    shape: Shape
    tables: Sequence[str]
    shown: dict[str, str] = field(default_factory=dict)
    """Name in the tree -> the name shown."""

    def __post_init__(self) -> None:
        scanned: dict[str, set[int]] = {}
        for node in walk(self.shape.root):
            for unique, name in node.sources if isinstance(node, Scan) else ():
                scanned.setdefault(name.lower(), set()).add(id(node))
                self.shown[unique] = name
        for unique, (leaf, name) in self.shape.origins.items():
            if len(scanned.get(name.lower(), ())) > 1:
                self.shown[unique] = f"{self.tables[leaf].rpartition('.')[2]}.{name}"

    def lines(self, relation: Relation, depth: int) -> Iterator[Operator]:
        # The lines below come first, because their columns are named there.
        # The rows below grouping sets are repeated for each of them: that goes without saying.
        children = (relation.source,) if isinstance(relation, Expand) and relation.source is not None else relation.children
        below = [list(self.lines(child, depth + 1)) for child in children]
        text = self._text(relation)
        if text is None:
            (only,) = below
            yield from (Operator(depth=one.depth - 1, text=one.text) for one in only)
            return
        yield Operator(depth=depth, text=text)
        for part in below:
            yield from part

    def _text(self, relation: Relation) -> str | None:
        """None for an operator that only picks columns."""
        if isinstance(relation, Scan):
            return f"scan {self.tables[relation.leaf]}"
        if isinstance(relation, Expand):
            self._name(relation.keys)
            return f"grouping sets {', '.join(self._set(names) for names in relation.sets)}"
        if isinstance(relation, Project):
            return self._project(relation)
        if isinstance(relation, Filter):
            return f"filter {self._sql(relation.predicate)}"
        if isinstance(relation, Join):
            return _JOINS[relation.kind] + (f" on {self._sql(relation.on)}" if relation.on is not None else "")
        if isinstance(relation, Aggregate):
            self._name(relation.keys)
            self._name(relation.values)
            by = f" by {', '.join(self.shown[k.name] for k in relation.keys)}" if relation.keys else " of all rows"
            values = ", ".join(self.shown[v.name] for v in relation.values)
            return f"aggregate{by}{f': {values}' if values else ''}"
        if isinstance(relation, Sessions):
            self._name((*relation.keys, relation.session, *relation.values))
            by = "".join(f"{self.shown[key.name]}, " for key in relation.keys)
            values = ", ".join(self.shown[v.name] for v in relation.values)
            return f"aggregate by {by}{self._sql(relation.session.expression)}{f': {values}' if values else ''}"
        if isinstance(relation, Window):
            self._name(relation.values)
            by = ", ".join(self.shown.get(name, name) for name in partition_columns(relation))
            return f"window{f' by {by}' if by else ' over all rows'}: {', '.join(self.shown[v.name] for v in relation.values)}"
        if isinstance(relation, Explode):
            self.shown.update({name: plain_name(name) for name in relation.names})
            if isinstance(relation, Unpivot):
                return f"unpivot {', '.join(self._sql(one) for one in relation.generator.expressions)}"
            if isinstance(relation, Recursion):
                return f"recursion {relation.generator.expressions[0].alias}"
            if isinstance(relation, TimeWindow):
                return f"time window {self._sql(relation.generator)}"
            return f"lateral view {self._sql(relation.generator)}"
        if isinstance(relation, Union):
            self._by_position(relation.columns)
            return "union all"
        if isinstance(relation, SetOperation):
            self._by_position(relation.columns)
            return relation.kind + (" all" if relation.all else "")
        if isinstance(relation, Distinct):
            return f"distinct {', '.join(self.shown.get(name, plain_name(name)) for name in relation.columns)}"
        if isinstance(relation, Limit):
            parts = [f"{word} {self._sql(value)}" for word, value in (("limit", relation.limit), ("offset", relation.offset)) if value]
            return " ".join(parts)
        if isinstance(relation, Scalar):
            self.shown[relation.name] = "(scalar subquery)"
            return "with the value of a scalar subquery"
        return relation.name if isinstance(relation, Ref) else "one row"

    def _project(self, project: Project) -> str | None:
        computed = [item for item in project.items if not isinstance(item.expression, exp.Column)]
        for item in project.items:
            if isinstance(item.expression, exp.Column):
                self.shown[item.name] = self.shown.get(item.expression.name, plain_name(item.expression.name))
        texts = [f"{self._sql(item.expression)} as {plain_name(item.name)}" for item in computed]
        self.shown.update({item.name: plain_name(item.name) for item in computed})
        return f"compute {', '.join(texts)}" if texts else None

    def _set(self, names: Sequence[str]) -> str:
        return f"({', '.join(self.shown[name] for name in names)})"

    def _by_position(self, columns: Sequence[str]) -> None:
        self.shown.update({name: plain_name(name) for name in columns})

    def _name(self, items: Sequence[Item]) -> None:
        for item in items:
            self.shown[item.name] = self._sql(item.expression)

    def _sql(self, expression: exp.Expr) -> str:
        parts = [self._part(part) for part in conjuncts(expression)]
        return " and ".join(parts)

    def _part(self, expression: exp.Expr) -> str:
        holder = exp.paren(expression.copy(), copy=False)
        for found in list(holder.find_all(exp.Column)):
            if found.name in self.shape.types or found.name in self.shown:
                found.replace(exp.Var(this=self.shown.get(found.name, plain_name(found.name))))
        text = " ".join(holder.this.sql("spark", normalize_functions="lower").split())
        return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
