"""text of a plan <-> its nodes, each with the text of its operator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field

from mvbuild.dataclass import dataclass

_LINE = re.compile(r"(?P<indent>(?:[ :][ ]{2})*)(?P<branch>(?::-|\+-) )?(?P<text>.*)")
_WIDTH = 3
"""Characters that indent a plan at each level."""
_SUBQUERY = re.compile(r"subquery#|\b(?:exists|list)#\d+ \[|exists \[")
"""As Spark prints them: `list#7 []`. A column with one of these names has no brackets after a space."""


@dataclass
class Node:
    text: str
    children: list[Node] = field(default_factory=list)


def tree_of(lines: Sequence[str]) -> list[Node]:
    roots: list[Node] = []
    above: list[tuple[int, Node]] = []
    for line in lines:
        match = _LINE.match(line)
        assert match is not None
        depth = len(match["indent"]) // _WIDTH + (1 if match["branch"] else 0)
        node = Node(match["text"])
        # The plan of a subquery is indented one level deeper than a child, with all that is below it.
        while above and above[-1][0] >= depth:
            above.pop()
        (above[-1][1].children if above else roots).append(node)
        above.append((depth, node))
    return roots


def lines_of(node: Node, depth: int) -> Iterator[str]:
    yield " " * (_WIDTH * depth) + node.text
    for child in node.children:
        yield from lines_of(child, depth + 1)


def conjuncts_of(condition: str) -> list[str]:
    """`((a AND b) AND c)` -> a, b, c; the condition itself if it is anything else."""
    depth, start, parts = 0, 1, []
    for at, char in enumerate(condition):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0 and at < len(condition) - 1:
            return [condition]
        if depth == 1 and condition.startswith(" AND ", at):
            parts.append(condition[start:at])
            start = at + len(" AND ")
    parts.append(condition[start:-1])
    return [inner for part in parts for inner in conjuncts_of(part)] if len(parts) > 1 and condition.startswith("(") else [condition]


def items_of(text: str) -> Iterator[str]:
    """The parts between commas outside brackets."""
    depth, start = 0, 0
    for at, char in enumerate(text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0)
        if depth == 0 and text.startswith(", ", at):
            yield text[start:at]
            start = at + 2
    yield text[start:]


def ids_of(text: str) -> list[str]:
    return re.findall(r"#(\d+)", text)


def has_subquery(text: str) -> bool:
    """Whether an expression of an operator reads a query.

    >>> has_subquery("Filter k#1 IN (list#7 [])"), has_subquery("Project [list#7, k#1]")
    (True, False)
    """
    return _SUBQUERY.search(text) is not None
