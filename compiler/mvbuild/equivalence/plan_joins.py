"""Node -> Node: inner joins below inner joins are one join of all their relations, since joins may be put in brackets in any way.

`(a JOIN b ON x) JOIN c ON y` and `a JOIN (b JOIN c ON y) ON x` both return the combinations of rows of a, b and c for which each condition
is true. The relations keep their order from left to right, so the columns do too. Which condition is computed first is not said: if one
of them fails for a row that another one removes, Spark promises neither an error nor a result.
"""

from __future__ import annotations

from mvbuild.equivalence.plan_tree import Node, conjuncts_of, has_subquery, ids_of, lines_of

_INNER = "Join Inner"


def with_flat_joins(node: Node) -> Node:
    """The same with a join of many relations in the place of joins of two. Its conditions are in no certain order.

    >>> a, b, c = (Node(f"RelationV2[{name}#{at}]") for at, name in enumerate("abc"))
    >>> left = with_flat_joins(Node("Join Inner, (b#1 = c#2)", [Node("Join Inner, (a#0 = b#1)", [a, b]), c]))
    >>> right = with_flat_joins(Node("Join Inner, (a#0 = b#1)", [a, Node("Join Inner, (b#1 = c#2)", [b, c])]))
    >>> left.text, right.text
    ('Join Inner, ((a#0 = b#1) AND (b#1 = c#2))', 'Join Inner, ((b#1 = c#2) AND (a#0 = b#1))')
    >>> left.children == right.children == [a, b, c]
    True
    """
    made = Node(node.text, [with_flat_joins(child) for child in node.children])
    if not _is_inner(made) or not any(_is_inner(child) for child in made.children):
        return made
    relations, conditions = [], []
    for child in made.children:
        relations += child.children if _is_inner(child) else [child]
        conditions += _conditions(child) if _is_inner(child) else []
    if not _have_own_ids(relations):
        return made
    conditions += _conditions(made)
    listed = conditions[0] if len(conditions) == 1 else f"({' AND '.join(conditions)})"
    return Node(f"{_INNER}, {listed}" if conditions else _INNER, relations)


def _is_inner(node: Node) -> bool:
    """A subquery in the condition would be one more child, and the children of a flat join are all relations."""
    is_join = node.text == _INNER or node.text.startswith(f"{_INNER}, ")
    return is_join and not has_subquery(node.text)


def _conditions(join: Node) -> list[str]:
    found = join.text[len(_INNER) :].removeprefix(", ")
    return conjuncts_of(found) if found else []


def _have_own_ids(relations: list[Node]) -> bool:
    """Whether an id says in which relation a column is. It does not if two of them read one table under the same ids."""
    own = [{id_ for line in lines_of(relation, 0) for id_ in ids_of(line)} for relation in relations]
    return sum(map(len, own)) == len(frozenset[str]().union(*own))
