"""Node -> Node: laws of operators that Spark applies in one text of a query and not in another one, so that both have the same plan.

Each law holds for all rows, so a plan and the one that it becomes return the same bag:

* a condition on columns by which a window is partitioned keeps or removes whole partitions: it may be applied before or after the window,
  and the same holds for the groups of an aggregate below the window, and for the rows of an inner join below that
* a projection of an aggregate's values can be part of the aggregate. Spark keeps it apart if it uses a value twice
* a projection of a projection computes its values from what that one reads
* an inner list of columns may have any order, a column twice, and a column that nothing above reads: the list above it names what it reads
  by id. So may a table list a column that nothing reads
* a sum of `grouping(x)` that an aggregate computes may be read by its name above it, or computed again from the grouping id; and so may a
  value of a projection by the ORDER BY above it
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mvbuild.equivalence.plan_tree import Node, conjuncts_of, has_subquery, ids_of, items_of

_BIT = r"cast\(\(shiftright\(\w*#\d+L, \d+\) & 1\) as tinyint\)"
_GROUPING = re.compile(rf"{_BIT}|\(+{_BIT}(?: \+ {_BIT}\))+")
"""`grouping(x)`, and a sum of several. The text says all of it: the id is a bigint, each number an integer, and each bit 0 or 1."""
_AGAIN = re.compile(r"[\w#(), .+*/-]+\)")
"""The text of a value that may be computed again."""
_STEADY = {"", *"abs cast coalesce concat length lower month quarter round substring trim upper year".split()}
"""Functions that return the same for the same arguments."""
_COLUMN = re.compile(r"\w*#(\d+)L?\b")
_PLAIN = re.compile(r"isnotnull\(\w*#\d+L?\)|\(\w*#\d+L? (?:=|<|>|<=|>=) -?[\w.]+\)")
"""A condition on one column that nothing else decides."""
_WINDOW = re.compile(r"(?:Window|WindowGroupLimit) \[")
_SCAN = re.compile(r"RelationV2\[(?P<columns>[^\[\]]*)\](?P<table>.*)")
_AGGREGATE, _PROJECT = "Aggregate [", "Project ["
_VALUE = re.compile(r"(?P<value>.+) AS \w*#(?P<id>\d+)L?")
_PASSING = ("Filter ", "Window ", "WindowGroupLimit ", "Sort ", "Join ")
"""Operators that pass on the columns of their children, and read them by id."""
_LONGEST = 50_000
"""Characters of an operator: a value that is used twice on each of many levels would grow without end."""


def with_filters_above_windows(node: Node) -> Node:
    """Conditions on the columns by which a window is partitioned are above it.

    >>> below = Node("Filter (isnotnull(k#1) AND (v#2 > 1))", [Node("RelationV2[k#1, v#2]")])
    >>> plan = Node("Window [rank() AS r#3], [k#1], [v#2 ASC]", [below])
    >>> above = with_filters_above_windows(plan)
    >>> above.text, above.children[0].children[0].text
    ('Filter isnotnull(k#1)', 'Filter (v#2 > 1)')
    >>> rows = Node("Filter isnotnull(k#1)", [Node("RelationV2[k#1, d#2, v#4]")])
    >>> groups = Node("Aggregate [k#1, d#2], [k#1, d#2, sum(v#4) AS s#5]", [rows])
    >>> with_filters_above_windows(Node("Window [sum(s#5) AS r#3], [k#1], [d#2 ASC]", [groups])).text
    'Filter isnotnull(k#1)'
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
    if node.text.startswith("Join Inner") and len(node.children) == 2:
        (left, of_left), (right, of_right) = (_without(child, partition) for child in node.children)
        return Node(node.text, [left, right]), [*of_left, *of_right]
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
    if node.text.startswith(_AGGREGATE):
        child, found = _without(node.children[0], partition & _grouped_by(node.text))
        return Node(node.text, [child]), found
    return node, []


def _grouped_by(aggregate: str) -> frozenset[str]:
    """Ids of the columns by which it groups. What it computes has other ids."""
    keys = next(items_of(aggregate.partition(" ")[2]))
    return frozenset(found[1] for item in items_of(keys[1:-1]) if (found := _COLUMN.fullmatch(item)))


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
    """A projection above an aggregate, or above the filter of its HAVING, is part of the aggregate.

    >>> plan = Node("Project [k#1, cast(s#3 as int) AS a#4, (s#3 - 1) AS b#5]", [Node("Aggregate [k#1], [k#1, sum(v#2) AS s#3]")])
    >>> with_whole_aggregates(plan).text
    'Aggregate [k#1], [k#1, cast(sum(v#2) as int) AS a#4, (sum(v#2) - 1) AS b#5]'
    >>> total = Node("Project [n#1L, (s#2L / n#1L) AS m#3]", [Node("Aggregate [count(1) AS n#1L, sum(v#4) AS s#2L]")])
    >>> with_whole_aggregates(total).text
    'Aggregate [count(1) AS n#1L, (sum(v#4) / count(1)) AS m#3]'
    >>> with_whole_aggregates(Node("Project [1 AS one#3]", [Node("Aggregate [k#1]")])).text
    'Project [1 AS one#3]'
    """
    made = Node(node.text, [with_whole_aggregates(child) for child in node.children])
    if not node.text.startswith(_PROJECT) or len(made.children) != 1 or has_subquery(node.text):
        return made
    (below,) = made.children
    having = below if below.text.startswith("Filter ") and len(below.children) == 1 else None
    aggregate = having.children[0] if having else below
    parts = list(items_of(aggregate.text.partition(" ")[2])) if aggregate.text.startswith(_AGGREGATE) else []
    shown = list(items_of(node.text[len(_PROJECT) : -1]))
    if not parts or all(_COLUMN.fullmatch(item) for item in shown):
        return made
    # Without GROUP BY there is only the second list. If none of the groups' columns is read, there is only the first one.
    *groups, values = parts
    outputs = _by_id(values[1:-1])
    if not groups and any(_COLUMN.fullmatch(item) for item in items_of(values[1:-1])):
        return made
    items = _substituted(shown, outputs) if outputs is not None else None
    if outputs is None or items is None:
        return made
    known = {ids_of(item)[-1] for item in items}
    read = [id_ for id_ in outputs if having and id_ in ids_of(having.text) and id_ not in known]
    listed = f"[{', '.join([*items, *(outputs[id_] for id_ in read)])}]"
    whole = Node(f"Aggregate {', '.join([*groups, listed])}", aggregate.children)
    if having is None:
        return whole
    names = (item.rpartition(" AS ")[2] for item in items)
    return Node(f"{_PROJECT}{', '.join(names)}]", [Node(having.text, [whole])])


def with_whole_projections(node: Node) -> Node:
    """A projection above another one is one projection: Spark keeps two if the upper one uses a value twice.

    >>> plan = Node("Project [net#3, (net#3 * 1.2) AS gross#4]", [Node("Project [(a#1 - b#2) AS net#3]", [Node("RelationV2[a#1, b#2]")])])
    >>> with_whole_projections(plan).text
    'Project [(a#1 - b#2) AS net#3, ((a#1 - b#2) * 1.2) AS gross#4]'
    """
    made = Node(node.text, [with_whole_projections(child) for child in node.children])
    if not made.text.startswith(_PROJECT) or len(made.children) != 1:
        return made
    (below,) = made.children
    if not below.text.startswith(_PROJECT) or has_subquery(made.text) or has_subquery(below.text):
        return made
    outputs = _by_id(below.text[len(_PROJECT) : -1])
    items = _substituted(list(items_of(made.text[len(_PROJECT) : -1])), outputs) if outputs is not None else None
    whole = f"{_PROJECT}{', '.join(items)}]" if items is not None else ""
    return Node(whole, below.children) if 0 < len(whole) < _LONGEST else made


def with_values_read(node: Node) -> Node:
    """What an aggregate computes from `grouping(x)` is read above it, and not computed again. So is what ORDER BY sorts by.

    >>> bit = "cast((shiftright(id#2L, 0) & 1) as tinyint)"
    >>> groups = Node(f"Aggregate [k#1, id#2L], [k#1, id#2L, {bit} AS g#3]", [Node("RelationV2[v#4]")])
    >>> with_values_read(Node(f"Sort [CASE WHEN ({bit} = 0) THEN k#1 END ASC NULLS FIRST], true", [groups])).text
    'Sort [CASE WHEN (g#3 = 0) THEN k#1 END ASC NULLS FIRST], true'
    >>> listed = Node("Project [city#1, substring(city#1, 1, 3) AS short#2]", [Node("RelationV2[city#1]")])
    >>> with_values_read(Node("Sort [substring(city#1, 1, 3) ASC NULLS FIRST], true", [listed])).text
    'Sort [short#2 ASC NULLS FIRST], true'
    """
    return _read(node)[0]


def _read(node: Node) -> tuple[Node, dict[str, str]]:
    """A node, and what is known of its rows: a value -> the column that has it.

    A list of columns in between changes neither: what it computes has other ids.
    """
    if len(node.children) != 1:
        return Node(node.text, [_read(child)[0] for child in node.children]), {}
    child, known = _read(node.children[0])
    text = node.text
    if text.startswith(_AGGREGATE):
        known = _groupings_of(text)
    elif text.startswith(_PASSING):
        of_project = _values_of(node.children[0].text) if text.startswith("Sort ") else {}
        # A whole before its parts.
        for value, name in sorted({**known, **of_project}.items(), key=lambda one: -len(one[0])):
            text = re.sub(rf"(?<!\w){re.escape(value)}", name, text)
    elif not text.startswith(_PROJECT):
        known = {}
    return Node(text, [child]), known


def _values_of(project: str) -> dict[str, str]:
    """The values that a projection computes from columns that it gives too."""
    if not project.startswith(_PROJECT):
        return {}
    items = list(items_of(project[len(_PROJECT) : -1]))
    plain = {found[1] for item in items if (found := _COLUMN.fullmatch(item))}
    computed = ((match["value"], item.rpartition(" AS ")[2]) for item in items if (match := _VALUE.fullmatch(item)))
    return {value: name for value, name in computed if _is_steady(value) and set(ids_of(value)) <= plain}


def _is_steady(value: str) -> bool:
    return bool(_AGAIN.fullmatch(value)) and {*re.findall(r"(\w*)\(", value)} <= _STEADY


def _groupings_of(aggregate: str) -> dict[str, str]:
    """The values of `grouping(x)` that an aggregate gives a name, if it gives the grouping id itself too."""
    parts = list(items_of(aggregate.partition(" ")[2]))
    outputs = list(items_of(parts[1][1:-1])) if len(parts) == 2 else []
    plain = {found[1] for item in outputs if (found := _COLUMN.fullmatch(item))}
    known: dict[str, str] = {}
    for item in outputs:
        match = _VALUE.fullmatch(item)
        if match and _GROUPING.fullmatch(match["value"]) and set(ids_of(match["value"])) <= plain:
            known.setdefault(match["value"], item.rpartition(" AS ")[2])
    return known


def with_lists_in_order(node: Node, above: tuple[str, ...] = (), *, is_inner: bool = False) -> Node:
    """Inner projections and aggregates list their columns in the order in which they are read above, each once, and no column that is not
    read.

    What is computed and not read remains.

    `above`: ids in the operators above; `is_inner`: what is above reads the columns by id, and not by position as a union does.

    >>> inner = Node("Project [b#2, a#1, (a#1 + 1) AS c#3, a#1]", [Node("RelationV2[a#1, b#2]")])
    >>> plan = Node("Project [a#1, c#3, b#2]", [Node("Filter (c#3 > 1)", [inner])])
    >>> with_lists_in_order(plan).children[0].children[0].text
    'Project [a#1, (a#1 + 1) AS c#3, b#2]'
    """
    text = _in_order(node.text, above) if is_inner else node.text
    ids = (*above, *ids_of(text))
    # A subquery in an expression is one more child: its list stays as it is.
    is_whole = len(node.children) == (2 if text.startswith("Join ") else 1)
    reads_by_id = text.startswith((_PROJECT, _AGGREGATE)) or (is_inner and text.startswith(_PASSING))
    return Node(text, [with_lists_in_order(child, ids, is_inner=is_whole and reads_by_id) for child in node.children])


def _in_order(text: str, above: tuple[str, ...]) -> str:
    if scanned := _SCAN.fullmatch(text):
        # Spark leaves out what it does not read, but not below every LATERAL.
        read = [column for column in scanned["columns"].split(", ") if ids_of(column)[-1:] and ids_of(column)[-1] in above]
        return f"RelationV2[{', '.join(read)}]{scanned['table']}"
    if text.startswith(_PROJECT):
        start, listed = _PROJECT, text[len(_PROJECT) : -1]
    elif text.startswith(_AGGREGATE) and len(parts := list(items_of(text.partition(" ")[2]))) == 2:
        start, listed = f"Aggregate {parts[0]}, [", parts[1][1:-1]
    else:
        return text
    outputs = _by_id(listed)
    if outputs is None or len(outputs) != len(set(items_of(listed))):
        return text
    read = [id_ for id_, item in outputs.items() if id_ in above or not _COLUMN.fullmatch(item)]
    ordered = sorted(read, key=lambda id_: above.index(id_) if id_ in above else len(above))
    return f"{start}{', '.join(outputs[id_] for id_ in ordered)}]"


def _by_id(outputs: str) -> dict[str, str] | None:
    """Id -> the output of an aggregate: a column, or `value AS name#id`. None if one of them is neither."""
    found: dict[str, str] = {}
    for item in items_of(outputs):
        match = _VALUE.fullmatch(item) or _COLUMN.fullmatch(item)
        if match is None:
            return None
        found[ids_of(item)[-1]] = item
    return found


def _substituted(items: list[str], outputs: Mapping[str, str]) -> list[str] | None:
    """The items of a projection with the values of an aggregate in the place of their names."""
    values = {id_: match["value"] for id_, item in outputs.items() if (match := _VALUE.fullmatch(item))}
    made = []
    for item in items:
        computed, plain = _VALUE.fullmatch(item), _COLUMN.fullmatch(item)
        if computed:
            value = _COLUMN.sub(lambda match: values.get(match[1], match[0]), computed["value"])
            made.append(f"{value}{item[computed.end('value') :]}")
        elif plain:
            made.append(outputs.get(plain[1], item))
        else:
            return None
    return made
