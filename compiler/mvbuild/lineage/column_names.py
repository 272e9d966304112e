"""a dotted name in a query + its Scope -> the Value that it means, or a Finding if the name is unknown or ambiguous."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mvbuild.diagnostics import did_you_mean
from mvbuild.lineage import functions
from mvbuild.lineage.binding import Binding
from mvbuild.lineage.checks import shown
from mvbuild.lineage.scopes import Meaning, Scope, all_values, known_names, meaning, star
from mvbuild.lineage.types import Array, Map, Struct, Type
from mvbuild.lineage.values import Attribute, Value, joined
from mvbuild.parse import placeholder

_MOST_KNOWN = 200


def names_of(node: exp.Expr) -> list[exp.Expr]:
    """All parts of a dotted name."""
    fields: list[exp.Expr] = []
    while isinstance(node, exp.Dot):
        fields.append(node.expression)
        node = node.this
    parts = list(node.parts) if isinstance(node, exp.Column) else [node]
    return [*parts, *reversed(fields)]


def star_value(node: exp.Expr, scope: Scope) -> Value:
    """The value of a star among the arguments of a function."""
    qualifier = tuple(p.name for p in node.parts[:-1]) if isinstance(node, exp.Column) else ()
    found = star(scope.tables, qualifier)
    if found is None:
        return Value(sure=False)
    return all_values(scope.tables) if not qualifier else joined((*(c.value for c in found.columns), Value(sure=found.is_closed)))


def resolved(node: exp.Expr, scope: Scope, binding: Binding) -> tuple[Value, Attribute]:
    """The value of an expression and its attribute: a plain column of FROM keeps its attribute."""
    parts = [p for p in names_of(node) if isinstance(p, exp.Identifier)]
    found = meaning(scope, [p.name for p in parts])
    taken = _taken(node, parts, found, scope, binding)
    if binding.notes is not None:
        binding.notes.types[id(node)] = taken.type
    is_column = len(found.candidates) == 1 and not found.fields
    return taken, (found.candidates[0].attribute if is_column else None) or Attribute()


def named_value(node: exp.Expr, parts: Sequence[exp.Expr], scope: Scope, binding: Binding) -> Value:
    names = [p.name for p in parts]
    return Value() if names[0].lower() in scope.parameters else _taken(node, parts, meaning(scope, names), scope, binding)


def _taken(node: exp.Expr, parts: Sequence[exp.Expr], found: Meaning, scope: Scope, binding: Binding) -> Value:
    names = [p.name for p in parts]
    if binding.notes is not None:
        binding.notes.names[id(node)] = found
    if found.candidates:
        return chosen(found, names, parts, binding)
    if found.value is not None:
        return found.value
    if _is_a_word(node, names):
        return Value()
    _report_unknown(names, parts, scope, binding)
    return Value(sure=False)


def chosen(found: Meaning, names: Sequence[str], parts: Sequence[exp.Expr], binding: Binding) -> Value:
    """The value of a name that has candidates."""
    if found.is_ambiguous:
        own = len(parts) - found.fields - 1
        help = "Qualify it with the table's name or alias."
        if own > 0:
            help = "Give the tables different aliases."
        name, columns = ".".join(placeholder.shown(n) for n in names[: own + 1]), {id(c.attribute) for c in found.candidates}
        message = f"'{name}' is ambiguous: {len(columns)} columns have this name"
        binding.find("ambiguous-column", message, parts[own], help)
        return Value(sure=False)
    if len({id(c.attribute) for c in found.candidates}) > 1:
        return Value(sure=False)
    first = found.candidates[0].value
    return first.typed(reached(first.type, parts[len(parts) - found.fields :], binding)) if found.fields else first


def _is_a_word(node: exp.Expr, names: Sequence[str]) -> bool:
    """Words that Spark reads as something other than a column if no column has the name."""
    if len(names) > 1:
        return False
    word = names[0].lower()
    return word in functions.CALLED_WITHOUT_PARENTHESES or (word in functions.UNITS and isinstance(node.parent, exp.Func))


def _report_unknown(names: Sequence[str], parts: Sequence[exp.Expr], scope: Scope, binding: Binding) -> None:
    qualifier, last = tuple(n.lower() for n in names[:1]), names[0]
    visible = [s for level in scope.levels for s in level.tables.sources]
    sources = [s for s in visible if s.answers(qualifier)] if len(names) > 1 else []
    if sources:
        known = [c.name for s in sources for c in s.relation.columns if c.name]
        message, at, last = f"'{placeholder.shown(names[0])}' has no column '{names[1]}'", parts[1], names[1]
    elif len(names) > 1:
        known = [s.spellings[0][-1] for s in visible if s.spellings]
        message, at = f"Unknown table or column '{placeholder.shown(names[0])}'", parts[0]
    else:
        known = known_names(scope)
        message, at = f"Unknown column '{names[0]}'", parts[0]
    binding.find("unknown-column", message, at, did_you_mean(last, known[:_MOST_KNOWN]))


def reached(type_: Type | None, fields: Sequence[exp.Expr], binding: Binding) -> Type | None:
    """The type of `value.a.b`."""
    for part in fields:
        if type_ is None or type_ == "variant":
            return None
        type_ = _field(type_, part, binding)
    return type_


def _field(type_: Type, part: exp.Expr, binding: Binding) -> Type | None:
    if isinstance(type_, Map):
        return type_.value
    if isinstance(type_, Array) and (isinstance(type_.element, Struct) or type_.element is None):
        inner = _field(type_.element, part, binding) if type_.element is not None else None
        return Array(inner) if inner is not None else None
    if isinstance(type_, Struct):
        known, inner = type_.field(part.name)
        if not known:
            help = did_you_mean(part.name, [name for name, _ in type_.fields])
            binding.find("unknown-column", f"The struct has no field '{part.name}'", part, help)
        return inner
    if type_ != "void":
        binding.find("unknown-column", f"A value of type {shown(type_)} has no field '{part.name}'", part, "Remove the field.")
    return None
