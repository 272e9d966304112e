"""Node -> Node: laws of operators that Spark applies in one text of a query and not in another one, so that both have the same plan.

Each law holds for all rows, so a plan and the one that it becomes return the same bag:

* a condition on columns by which a window is partitioned keeps or removes whole partitions: it may be applied before or after the window
* a projection of an aggregate's values can be part of the aggregate. Spark keeps it apart if it uses a value twice
"""

from __future__ import annotations

import re

from mvbuild.equivalence.plan_tree import Node, conjuncts_of, ids_of, items_of

_COLUMN = re.compile(r"\w*#(\d+)L?\b")
_PLAIN = re.compile(r"isnotnull\(\w*#\d+L?\)|\(\w*#\d+L? (?:=|<|>|<=|>=) -?[\w.]+\)")
"""A condition on one column that nothing else decides."""
_WINDOW = re.compile(r"(?:Window|WindowGroupLimit) \[")
_AGGREGATE, _PROJECT = "Aggregate [", "Project ["
_VALUE = re.compile(r"(?P<value>.+) AS \w*#(?P<id>\d+)L?")
_APART = ("subquery#", "exists#", "list#", "exists [")
"""A projection with a subquery is left as it is."""


def with_filters_above_windows(node: Node) -> Node:
    """Conditions on the columns by which a window is partitioned are above it.

    >>> below = Node("Filter (isnotnull(k#1) AND (v#2 > 1))", [Node("RelationV2[k#1, v#2]")])
    >>> plan = Node("Window [rank() AS r#3], [k#1], [v#2 ASC]", [below])
    >>> above = with_filters_above_windows(plan)
    >>> above.text, above.children[0].children[0].text
    ('Filter isnotnull(k#1)', 'Filter (v#2 > 1)')
    """
    made = Node(node.text, [with_filters_above_windows(child) for child in node.children])
    if node.text.startswith("Filter ") and len(made.children) == 1 and made.children[0].text.startswith("Filter "):
        (below,) = made.children
        return _filter([*_conditions(made), *_conditions(below)], below.children[0])
    if not _WINDOW.match(node.text) or len(made.children) != 1:
        return made
    partition = _partition_of(node.text)
    child, lifted = _without(made.children[0], partition)
    return _filter(lifted, Node(node.text, [child])) if lifted else made


def _without(node: Node, partition: frozenset[str]) -> tuple[Node, list[str]]:
    """A relation below a window without its conditions on the partition columns, and these."""
    if len(node.children) != 1:
        return node, []
    if node.text.startswith("Filter "):
        child, found = _without(node.children[0], partition)
        lifted = [c for c in _conditions(node) if _PLAIN.fullmatch(c) and set(ids_of(c)) <= partition]
        kept = [c for c in _conditions(node) if c not in lifted]
        return _filter(kept, child), [*lifted, *found]
    if node.text.startswith(_PROJECT):
        # A column that the projection computes has an id that is not known below.
        child, found = _without(node.children[0], partition)
        return Node(node.text, [child]), found
    return node, []


def _partition_of(window: str) -> frozenset[str]:
    """Ids of the columns by which it is partitioned; none if one of them is computed."""
    parts = list(items_of(window.partition(" ")[2]))
    listed = parts[1] if window.startswith("Window [") and len(parts) > 1 else parts[0]
    columns = [_COLUMN.fullmatch(item) for item in items_of(listed[1:-1])]
    return frozenset(found[1] for found in columns if found) if all(columns) else frozenset()


def _conditions(filter_: Node) -> list[str]:
    return conjuncts_of(filter_.text.partition(" ")[2])


def _filter(conditions: list[str], child: Node) -> Node:
    known = list(dict.fromkeys(conditions))
    if not known:
        return child
    return Node(f"Filter {known[0] if len(known) == 1 else '(' + ' AND '.join(known) + ')'}", [child])


def with_whole_aggregates(node: Node) -> Node:
    """A projection directly above an aggregate is part of it.

    >>> plan = Node("Project [k#1, cast(s#3 as int) AS a#4, (s#3 - 1) AS b#5]", [Node("Aggregate [k#1], [k#1, sum(v#2) AS s#3]")])
    >>> with_whole_aggregates(plan).text
    'Aggregate [k#1], [k#1, cast(sum(v#2) as int) AS a#4, (sum(v#2) - 1) AS b#5]'
    """
    made = Node(node.text, [with_whole_aggregates(child) for child in node.children])
    if not node.text.startswith(_PROJECT) or len(made.children) != 1 or any(word in node.text for word in _APART):
        return made
    (below,) = made.children
    parts = list(items_of(below.text.partition(" ")[2])) if below.text.startswith(_AGGREGATE) else []
    shown = list(items_of(node.text[len(_PROJECT) : -1]))
    if len(parts) != 2 or all(_COLUMN.fullmatch(item) for item in shown):
        return made
    values: dict[str, str] = {}
    for item in items_of(parts[1][1:-1]):
        found = _VALUE.fullmatch(item)
        if found:
            values[found["id"]] = found["value"]
        elif not _COLUMN.fullmatch(item):
            return made

    def value(match: re.Match[str]) -> str:
        return values.get(match[1], match[0])

    made_items = []
    for item in shown:
        computed = _VALUE.fullmatch(item)
        plain = _COLUMN.fullmatch(item)
        if computed:
            text = f"{_COLUMN.sub(value, computed['value'])}{item[computed.end('value') :]}"
        elif plain:
            text = f"{values[plain[1]]} AS {item}" if plain[1] in values else item
        else:
            return made
        made_items.append(text)
    return Node(f"{_AGGREGATE}{parts[0][1:]}, [{', '.join(made_items)}]", below.children)
