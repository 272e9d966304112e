"""Relation -> a text that two relations share only if they have the same rows, whatever their columns are called.

A common table expression that a query reads twice is two relations, each with names of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from mvbuild.incremental.algebra import Aggregate, Distinct, Filter, Item, Join, Project, Relation, Scan


def rows_text(relation: Relation) -> str | None:
    """None if the relation has an operator for which this is not known.

    >>> from mvbuild.incremental.samples import shape
    >>> query = "SELECT a.n, b.n AS m FROM (SELECT count(*) AS n FROM {orders}) AS a, (SELECT count(*) AS n FROM {orders}) AS b"
    >>> both = shape(query).root.child
    >>> rows_text(both.left) == rows_text(both.right)
    True
    """
    try:
        return _Texts().of(relation)
    except KeyError:
        return None


class _Texts:
    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def of(self, relation: Relation) -> str:
        """Raises KeyError for other operators."""
        below = ", ".join(map(self.of, relation.children))
        return f"{type(relation).__name__}[{_DETAILS[type(relation)](self, relation)}]({below})"

    def new(self, name: str) -> str:
        return self._names.setdefault(name, f"c{len(self._names)}")

    def text(self, expression: exp.Expr | None) -> str:
        if expression is None:
            return ""
        plain = expression.transform(lambda node: exp.column(self._names[node.name]) if isinstance(node, exp.Column) else node)
        return plain.sql("spark", comments=False)

    def scan(self, node: Scan) -> str:
        columns = ", ".join(f"{source} {self.new(name)}" for name, source in node.sources)
        return f"{node.leaf} {node.version} {columns}"

    def items(self, items: tuple[Item, ...]) -> str:
        texts = [self.text(item.expression) for item in items]
        return ", ".join(f"{text} {self.new(item.name)}" for text, item in zip(texts, items, strict=True))

    def join(self, node: Join) -> str:
        return f"{node.kind} {node.form} {self.new(node.mark) if node.mark else ''} {self.text(node.on)}"


_DETAILS: dict[type[Relation], Callable[..., str]] = {
    Scan: _Texts.scan,
    Project: lambda texts, node: texts.items(node.items),
    Filter: lambda texts, node: texts.text(node.predicate),
    Join: _Texts.join,
    Aggregate: lambda texts, node: f"{texts.items(node.keys)}; {texts.items(node.values)}",
    Distinct: lambda *_: "",
}
