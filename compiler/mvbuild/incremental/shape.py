"""SQL text with a marker for every table -> Shape: the query as a tree of relational algebra.

A part that the tree cannot express is refused and never ignored. Even so, this module alone is not trusted: before a rewrite is used, Spark
confirms that the tree, written as SQL again, is the query that the user wrote (refresh/round_trip.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Item, Project, Relation, column
from mvbuild.incremental.alike import marked
from mvbuild.incremental.building import Building, LeafColumns
from mvbuild.incremental.clock import lifted
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.parsing import parsed
from mvbuild.incremental.queries import query
from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.scopes import Scope
from mvbuild.incremental.subqueries import correlated, scalar_subquery
from mvbuild.incremental.syntax import unsupported
from mvbuild.lineage.expression_type import Types, type_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A query as a tree. `outputs`: (name in the tree, column of the result), in order."""

    root: Relation
    outputs: tuple[tuple[str, str], ...]
    types: Types
    """The type of each column in the tree."""
    origins: Mapping[str, tuple[int, str]]
    """Name of a scanned column -> leaf and column."""
    required: frozenset[str]
    """Names of scanned columns that cannot be NULL in their table."""


def with_lifted_readings(shape: Shape, names: Mapping[str, str]) -> Shape:
    """The same query with these readings of the clock in filters and projections."""
    types = dict(shape.types)

    def fresh(value: exp.Expr) -> str:
        name = f"time_{len(types)}"
        while name in types:
            name += "_0"
        types[name] = type_of(value, types)
        return name

    return replace(shape, root=lifted(shape.root, names, fresh), types=types)


def plain_name(unique: str) -> str:
    """The name in the query from which a name in the tree was made."""
    plain, _, number = unique.rpartition("_")
    return plain if plain and number.isdigit() else unique


def readable(message: str, shape: Shape) -> str:
    """A message without the internal names of columns in the tree."""
    return re.sub(r"`(\w+)`", lambda found: plain_name(found[1]) if found[1] in shape.types else found[0], message)


def shape_of(sql: str, leaves: Sequence[LeafColumns], outputs: Sequence[str] | None) -> Shape:
    """`outputs`: the columns of the result; None: as the text names them. Raises Refused for a query that the tree cannot express."""
    try:
        tree = parsed(sql)
    except (ParseError, TokenError, ValueError) as exc:
        raise Refused("unsupported-operator", f"the query cannot be parsed: {str(exc).splitlines()[0]}") from exc
    if tree is None:
        raise Refused("unsupported-operator", "the query cannot be parsed")
    parameter = tree.find(exp.Placeholder)
    if parameter is not None:
        raise unsupported(parameter)
    parameters = frozenset(one.name.lower() for found in tree.find_all(exp.Lambda) for one in found.expressions)
    building = Building(leaves=leaves, query=query, scalar=scalar_subquery, correlated=correlated, parameters=parameters)
    block = query(building, tree, Scope())
    outputs = [name for name, _ in block.columns] if outputs is None else outputs
    if len(block.columns) != len(outputs):
        raise Refused("unsupported-operator", "the columns of the result are unknown", tree)
    pairs = tuple((unique, name) for (_, unique), name in zip(block.columns, outputs, strict=True))
    # A column that is selected twice needs two names.
    seen: dict[str, str] = {}
    items = []
    for unique, name in pairs:
        again = building.fresh(name, building.types.get(unique)) if unique in seen else unique
        seen[again] = unique
        items.append(Item(again, column(unique)))
    root = block.relation if [i.name for i in items] == list(block.relation.columns) else Project(block.relation, tuple(items))
    named = tuple((item.name, name) for item, name in zip(items, outputs, strict=True))
    root = pruned(marked(root, building.types))
    return Shape(root=root, outputs=named, types=building.types, origins=building.origins, required=frozenset(building.required))
