"""Node -> Node: the groups of several `count(DISTINCT ...)` in one order, whatever order Spark chose.

Spark gives each row once for each set of distinct values, with a number of the set, groups the rows by these values and the number, and
counts the values with the number of their set. The number decides about nothing else, and neither does the order of the columns that are
read by id: so any numbers and any order return the same bag. Spark takes both from hashes of names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mvbuild.dataclass import dataclass
from mvbuild.equivalence.plan_tree import Node, ids_of, items_of

_COLUMN = re.compile(r"\w*#(\d+)L?")
_NUMBER = re.compile(r"\d+")
_AGGREGATE, _EXPAND = "Aggregate ", "Expand "


def with_sets_in_order(node: Node) -> Node:
    """The sets of distinct values are numbered in the order in which they are counted.

    >>> source = Node("RelationV2[a#1, b#2]")
    >>> each = Node("Expand [[b#2, null, 1], [null, a#1, 2]], [b#3, a#4, gid#5]", [source])
    >>> groups = Node("Aggregate [b#3, a#4, gid#5], [b#3, a#4, gid#5]", [each])
    >>> counts = "count(a#4) FILTER (WHERE (gid#5 = 2)) AS x#6L, count(b#3) FILTER (WHERE (gid#5 = 1)) AS y#7L"
    >>> found = with_sets_in_order(Node(f"Aggregate [{counts}]", [groups]))
    >>> found.text
    'Aggregate [count(a#4) FILTER (WHERE (gid#5 = 1)) AS x#6L, count(b#3) FILTER (WHERE (gid#5 = 2)) AS y#7L]'
    >>> found.children[0].children[0].text
    'Expand [[a#1, 1, null], [null, 2, b#2]], [a#4, gid#5, b#3]'
    """
    made = Node(node.text, [with_sets_in_order(child) for child in node.children])
    if not made.text.startswith(_AGGREGATE) or len(made.children) != 1:
        return made
    (groups,) = made.children
    if not groups.text.startswith(_AGGREGATE) or len(groups.children) != 1:
        return made
    (each,) = groups.children
    found = _Sets.of(each.text, made.text) if each.text.startswith(_EXPAND) and len(each.children) == 1 else None
    parts = list(items_of(groups.text[len(_AGGREGATE) :]))
    if found is None or len(parts) != 2 or not found.is_only_counted(made.text, parts):
        return made
    keys, values = (list(items_of(part[1:-1])) for part in parts)
    listed = f"Aggregate [{', '.join(found.sorted(keys))}], [{', '.join(found.sorted(values))}]"
    return Node(found.numbered(made.text), [Node(listed, [Node(found.text(), each.children)])])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sets:
    """Rows of Spark's Expand. `above` are the ids in the aggregate above, in order."""

    rows: Sequence[Sequence[str]]
    columns: Sequence[str]
    number: int
    """The place of the column that numbers the sets."""
    new: dict[str, str]
    above: tuple[str, ...]

    @classmethod
    def of(cls, expand: str, above: str) -> _Sets | None:
        parts = list(items_of(expand[len(_EXPAND) :]))
        if len(parts) != 2:
            return None
        columns = list(items_of(parts[1][1:-1]))
        rows = [list(items_of(row[1:-1])) for row in items_of(parts[0][1:-1])]
        if any(len(row) != len(columns) for row in rows) or not all(map(_COLUMN.fullmatch, columns)):
            return None
        for at, column in enumerate(columns):
            numbers = [row[at] for row in rows]
            if len(set(numbers)) == len(rows) and all(map(_NUMBER.fullmatch, numbers)) and not column.endswith("L"):
                counted = re.findall(rf"\(\w*#{ids_of(column)[0]} = (\d+)\)", above)
                order = dict.fromkeys([*counted, *sorted(numbers)])
                if set(order) == set(numbers):
                    new = {number: str(new) for new, number in enumerate(order, 1)}
                    return cls(rows=rows, columns=columns, number=at, new=new, above=tuple(dict.fromkeys(ids_of(above))))
        return None

    @property
    def _id(self) -> str:
        return ids_of(self.columns[self.number])[0]

    def is_only_counted(self, above: str, groups: Sequence[str]) -> bool:
        """Whether the number is nowhere but in conditions above, and in the two lists of the groups."""
        elsewhere = re.sub(rf"\(\w*#{self._id} = \d+\)", "", above)
        lists = [list(items_of(part[1:-1])) for part in groups]
        is_listed = all(sum(self._id in ids_of(item) for item in items) == 1 and self.columns[self.number] in items for items in lists)
        return self._id not in ids_of(elsewhere) and is_listed

    def numbered(self, above: str) -> str:
        return re.sub(rf"(\(\w*#{self._id} = )(\d+)\)", lambda match: f"{match[1]}{self.new[match[2]]})", above)

    def sorted(self, items: Sequence[str]) -> list[str]:
        """Items of a list whose columns are read by id, in the order in which they are read."""
        ids = [ids_of(item)[-1:] for item in items]
        ranks = [self.above.index(one[0]) if one and one[0] in self.above else len(self.above) for one in ids]
        return [item for _, _, item in sorted(zip(ranks, range(len(items)), items, strict=True))]

    def text(self) -> str:
        order = [self.columns.index(column) for column in self.sorted(self.columns)]
        rows = sorted(self.rows, key=lambda row: int(self.new[row[self.number]]))
        listed = (", ".join(self.new[row[at]] if at == self.number else row[at] for at in order) for row in rows)
        return f"Expand [{', '.join(f'[{row}]' for row in listed)}], [{', '.join(self.columns[at] for at in order)}]"
