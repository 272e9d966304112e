"""explode, inline, stack and similar functions + their arguments -> the columns that they produce."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mvbuild.lineage.binding import Binding
from mvbuild.lineage.expressions import value
from mvbuild.lineage.functions import name_of
from mvbuild.lineage.scopes import Scope
from mvbuild.lineage.types import Array, Map, Struct, Type
from mvbuild.lineage.values import Relation, Value, attributes, joined

_EXPLODES = ("explode", "explodeouter", "_explodeouter", "explode_outer()")
_POSITIONS = ("posexplode", "posexplodeouter", "_posexplodeouter", "posexplode_outer()")
_INLINES = ("inline", "inline()", "inlineouter", "_inlineouter", "inline_outer()")
_STACKS = ("stack", "stack()")
_OTHERS = (*_STACKS, "json_tuple()", "variant_explode()", "variant_explode_outer()")

GeneratedColumns = list[tuple["str | None", "Type | None"]]


def is_generator(node: exp.Expr) -> bool:
    return isinstance(node, exp.Func) and name_of(node) in (*_EXPLODES, *_POSITIONS, *_INLINES, *_OTHERS)


def generated(node: exp.Expr, names: Sequence[str], scope: Scope, binding: Binding) -> Relation:
    """The columns of a generator. `names`: the aliases in the query; without aliases the columns have Spark's names."""
    arguments = [value(a, scope, binding) for a in node.iter_expressions() if not isinstance(a, (exp.Identifier, exp.TableAlias))]
    given = joined(arguments)
    made = _columns(node, [a.type for a in arguments], len(names))
    if made is None or (names and len(names) != len(made)):
        made = [(name, None) for name in names]
    if not made:
        return Relation((), (None,), given.bases)
    values = _stacked(node, arguments, len(made)) if name_of(node) in _STACKS else [given] * len(made)
    columns = attributes((names[i] if names else name, values[i].typed(type_), None) for i, (name, type_) in enumerate(made))
    return Relation(tuple(columns), (), given.bases)


def _columns(node: exp.Expr, types: Sequence[Type | None], names: int) -> GeneratedColumns | None:
    """The columns of a generator; None if only Spark knows them."""
    name, first = name_of(node), types[0] if types else None
    if name in _EXPLODES:
        return _exploded(first, names)
    if name in _POSITIONS:
        inner = _exploded(first, names - 1)
        return [("pos", "int"), *inner] if inner is not None else None
    if name in _INLINES:
        element = first.element if isinstance(first, Array) else None
        return list(element.fields) if isinstance(element, Struct) else None
    if name == "json_tuple()":
        return [(f"c{i}", "string") for i in range(len(types) - 1)]
    if name.startswith("variant_explode"):
        return [("pos", "int"), ("key", "string"), ("value", "variant")]
    if name in _STACKS and (rows := _stack_height(node)):
        return [(f"col{i}", None) for i in range(-(-(len(types) - 1) // rows))]
    return [("id", "bigint")] if name == "range()" else None


def _exploded(type_: Type | None, names: int) -> GeneratedColumns | None:
    if isinstance(type_, Map):
        return [("key", type_.key), ("value", type_.value)]
    if isinstance(type_, Array):
        return [("col", type_.element)]
    return [("col", None)] * names if names in (1, 2) and type_ is None else None


def _stack_height(node: exp.Expr) -> int:
    """How many rows stack() makes; 0 if that is not a plain number."""
    number = next(node.iter_expressions(), None)
    return int(number.name) if isinstance(number, exp.Literal) and number.is_int else 0


def _stacked(node: exp.Expr, arguments: Sequence[Value], width: int) -> list[Value]:
    """The values of a row follow each other, so every `width`-th argument belongs to the same column."""
    if not _stack_height(node):
        return [joined(arguments)] * width
    return [joined(arguments[1 + i :: width]) for i in range(width)]
