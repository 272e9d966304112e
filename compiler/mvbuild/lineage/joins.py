"""two sides of a join + the columns by which USING or NATURAL joins them -> Tables: what `*` and each name mean behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from mvbuild.diagnostics import did_you_mean
from mvbuild.lineage.binding import Binding
from mvbuild.lineage.scopes import Tables
from mvbuild.lineage.types import common
from mvbuild.lineage.values import Attribute, Base, Output, Value, joined

Pairs = Sequence[tuple[Output, Output]]
"""The columns that are compared: of the left side, and of the right one."""


def natural_names(left: Tables, right: Tables) -> list[str] | None:
    """The columns by which NATURAL JOIN joins; None if that is not clear."""
    theirs = {c.key for c in right.star}
    names = [c.key for c in left.star if c.key in theirs]
    known = [name for name in names if name is not None]
    return known if len(set(known)) == len(names) else None


def natural(left: Tables, right: Tables, side: str) -> Tables:
    """NATURAL JOIN."""
    both = left.together(right)
    if left.rest or right.rest:
        return replace(both, star=(), rest=(*both.rest, None))
    names = natural_names(left, right)
    if names is None:
        return replace(both, star=(), rest=(None,))
    return merged(left, right, [(_one(left, name), _one(right, name)) for name in names], side)


def _one(tables: Tables, key: str) -> Output:
    return next(c for c in tables.star if c.key == key)


def using(left: Tables, right: Tables, names: Sequence[exp.Expr], side: str, binding: Binding) -> Tables:
    """JOIN ... USING."""
    pairs = [(_key(left, name, "left", binding), _key(right, name, "right", binding)) for name in names]
    return merged(left, right, pairs, side)


def _key(tables: Tables, name: exp.Expr, where: str, binding: Binding) -> Output:
    found = [c for c in tables.star if c.key == name.name.lower()]
    if found:
        return found[0]
    if not tables.rest:
        known = [c.name for c in tables.star if c.name]
        message = f"The {where} side of the join has no column '{name.name}'"
        binding.find("unknown-column", message, name, did_you_mean(name.name, known))
        return Output(name.name, Value(sure=False), None, Attribute())
    only = tables.rest[0] if len(set(tables.rest)) == 1 else None
    bases = frozenset((Base(only, name.name),)) if only is not None else frozenset()
    return Output(name.name, Value(None, bases, only is not None), None, Attribute())


def merged(left: Tables, right: Tables, pairs: Pairs, side: str) -> Tables:
    """The compared columns come first, and once. `side`: LEFT, RIGHT, FULL, or empty."""
    both = left.together(right)
    keys = {one.key for one, _ in pairs}
    others = tuple(c for c in both.star if c.key not in keys)
    rows = both.rows.union(*(o.value.bases for pair in pairs for o in pair))
    if side == "FULL":
        out = (*(one for one, _ in pairs), *(other for _, other in pairs))
    else:
        out = tuple(one if side == "RIGHT" else other for one, other in pairs)
    shown = tuple(_shown(one, two, side) for one, two in pairs)
    return replace(both, star=(*shown, *others), covered=(*both.covered, *out), rows=rows)


def _shown(one: Output, two: Output, side: str) -> Output:
    if side == "FULL":
        type_ = common((one.value.type, two.value.type))
        return Output(one.name, joined((one.value, two.value), type_), None, Attribute())
    return two if side == "RIGHT" else one


def left_side(left: Tables, both: Tables) -> Tables:
    """What a semi or anti join leaves: the left side, with the columns of USING first."""
    own = {id(c) for c in left.star}
    return replace(left, star=tuple(c for c in both.star if id(c) in own), rows=both.rows)
