"""an expression of a query + the Scope around it -> its Value: type and base columns, with Findings for unknown names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from mvbuild.lineage import functions
from mvbuild.lineage.binding import Binding
from mvbuild.lineage.calls import call_of
from mvbuild.lineage.checks import ARITHMETIC, cast_type, check_comparable, check_numbers, literal_type, operator_type, shown
from mvbuild.lineage.column_names import named_value, names_of, reached, star_value
from mvbuild.lineage.scopes import Scope, Tables
from mvbuild.lineage.types import COMPLEX, Array, Map, Struct, Type, common, is_number
from mvbuild.lineage.values import Output, Value, joined

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ)
_WITHOUT_VALUE = (exp.Identifier, exp.DataType, exp.Var, exp.TableAlias, exp.WindowSpec)
"""Parts of a function that are not its arguments."""
_CHAINS = (*ARITHMETIC, exp.And, exp.Or, exp.DPipe, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)


def value(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    """The value of any expression."""
    found = _value(node, scope, binding)
    if binding.notes is not None:
        binding.notes.types[id(node)] = found.type
    return found


def _value(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    rule = _RULES.get(type(node))
    if rule is not None:
        return rule(node, scope, binding)
    if isinstance(node, exp.Query):
        return _subquery(node, scope, binding)
    return _function(node, scope, binding)


def values(nodes: Iterable[exp.Expr], scope: Scope, binding: Binding) -> list[Value]:
    return [value(node, scope, binding) for node in nodes]


# Names


def _column(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    if isinstance(node.this, exp.Star):
        return star_value(node, scope)
    return named_value(node, [p for p in names_of(node) if isinstance(p, exp.Identifier)], scope, binding)


def _dot(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    parts = names_of(node)
    base = node
    while isinstance(base, exp.Dot):
        base = base.this
    if not all(isinstance(p, exp.Identifier) for p in parts[1:]):
        return _function(node, scope, binding)
    if isinstance(base, exp.Column) and not isinstance(base.this, exp.Star):
        return named_value(node, parts, scope, binding)
    found = value(base, scope, binding)
    return found.typed(reached(found.type, parts[1:], binding))


# Operators


def _chain(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    """The value of `a + b + c`, without one recursion per operator."""
    spine: list[exp.Expr] = []
    while isinstance(node, _CHAINS):
        spine.append(node)
        node = node.this
    found = value(node, scope, binding)
    left = node
    for operator in reversed(spine):
        right = value(operator.expression, scope, binding)
        found = joined((found, right), operator_type(operator, found.type, right.type, left, binding))
        if binding.notes is not None:
            binding.notes.types[id(operator)] = found.type
        left = operator
    return found


def _comparison(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    one, two = value(node.this, scope, binding), value(node.expression, scope, binding)
    check_comparable(node, one.type, two.type, binding)
    return joined((one, two), "boolean")


def _in(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    found = [value(node.this, scope, binding)]
    query = node.args.get("query")
    others = [query] if query is not None else node.expressions
    for other in others:
        found.append(value(other, scope, binding))
        if not isinstance(node.this, exp.Tuple):
            check_comparable(node, found[0].type, found[-1].type, binding)
    return joined(found, "boolean")


def _case(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    subject = [value(node.this, scope, binding)] if node.this is not None else []
    conditions = [value(branch.this, scope, binding) for branch in node.args["ifs"]]
    results = [value(branch.args["true"], scope, binding) for branch in node.args["ifs"]]
    default = node.args.get("default")
    results += [value(default, scope, binding)] if default is not None else []
    return joined((*subject, *conditions, *results), common(r.type for r in results))


def _if(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    condition = value(node.this, scope, binding)
    parts = (node.args.get("true"), node.args.get("false"))
    results = [value(part, scope, binding) for part in parts if part is not None]
    return joined((condition, *results), common(r.type for r in results))


# Functions


def _function(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    found = values(_arguments(node), scope, binding)
    check_numbers(node, found, binding)
    types = [v.type for v in found]
    type_ = _call_type(node, types, binding) if isinstance(node, exp.Anonymous) else functions.function_type(node, types)
    return joined(found, type_)


def _call_type(node: exp.Anonymous, types: list[Type | None], binding: Binding) -> Type | None:
    """The type of a call that has no class, or that keeps the name that was written (incremental/parsing.py): then as the class has it."""
    read = call_of(node.name, node.expressions)
    if read is None:
        return functions.function_type(node, types)
    given = iter(types)
    columns = tuple(
        Output(f"argument_{at}", Value(next(given))) for at, one in enumerate(node.expressions) if not isinstance(one, _WITHOUT_VALUE)
    )
    return value(read, Scope(tables=Tables(star=columns)), replace(binding, findings={}, notes=None)).type


def _arguments(node: exp.Expr) -> Iterator[exp.Expr]:
    return (n for n in node.iter_expressions() if not isinstance(n, _WITHOUT_VALUE))


def _star(node: exp.Expr, scope: Scope, binding: Binding) -> Value:  # noqa: ARG001
    return star_value(node, scope)


def _count(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    if isinstance(node.this, exp.Star):
        return Value("bigint")
    return joined(values(_arguments(node), scope, binding), "bigint")


def _grouping(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    """`grouping()`: the group that a row belongs to, whatever the values of the columns are."""
    values(_arguments(node), scope, binding)
    return Value("bigint" if isinstance(node, exp.GroupingId) else "tinyint")


def _cast(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    return value(node.this, scope, binding).typed(cast_type(node.args["to"]))


def _literal(node: exp.Expr, scope: Scope, binding: Binding) -> Value:  # noqa: ARG001
    return Value(literal_type(node))


def _negative(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    found = value(node.this, scope, binding)
    return found if is_number(found.type) else found.typed(None)


def _null(node: exp.Expr, scope: Scope, binding: Binding) -> Value:  # noqa: ARG001
    return Value("void")


def _struct(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    fields: list[tuple[str, Value]] = []
    is_known = True
    for i, part in enumerate(node.expressions):
        if isinstance(part, exp.PropertyEQ):
            is_known &= isinstance(part.this, exp.Identifier)
            fields.append((part.name, value(part.expression, scope, binding)))
        else:
            is_known &= not part.is_star
            fields.append((f"col{i + 1}", value(part, scope, binding)))
    type_ = Struct(tuple((name, v.type) for name, v in fields)) if is_known else None
    return joined((v for _, v in fields), type_)


def _array(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    found = values(node.expressions, scope, binding)
    element = common(v.type for v in found)
    return joined(found, Array(element) if element not in (None, "void") else None)


def _map(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    keys, held = value(node.args["keys"], scope, binding), value(node.args["values"], scope, binding)
    is_known = isinstance(keys.type, Array) and isinstance(held.type, Array)
    type_ = Map(keys.type.element, held.type.element) if is_known else None  # type: ignore[union-attr]
    return joined((keys, held), type_)


def _lambda(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    found = value(node.this, scope.with_parameters(p.name for p in node.expressions), binding)
    return found.typed(None)


def _identifier(node: exp.Expr, scope: Scope, binding: Binding) -> Value:  # noqa: ARG001
    """A parameter of a lambda function: its values come from the other arguments of the function."""
    return Value()


def _keyword(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    return value(node.expression, scope, binding)


def _window(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    found = [value(node.this, scope, binding), window_value(node, scope, binding)]
    return joined(found, found[0].type)


def window_value(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    """The columns that PARTITION BY and ORDER BY of a window read, including those of the named window that it extends."""
    order = node.args.get("order")
    parts = [*(node.args.get("partition_by") or ()), *(order.expressions if order is not None else ())]
    name = node.args.get("alias") or node.args.get("first")
    named = scope.windows.get(name.name.lower()) if isinstance(name, exp.Identifier) else None
    return joined((*values(parts, scope, binding), named or Value()))


# Subqueries


def _subquery(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    relation = binding.query(node, scope.below(), binding)
    binding.rows |= relation.rows
    found = joined(c.value for c in relation.columns)
    type_ = relation.columns[0].value.type if len(relation.columns) == 1 and relation.is_closed else None
    return Value(type_, found.bases, found.sure and relation.is_closed)


def _exists(node: exp.Expr, scope: Scope, binding: Binding) -> Value:
    if not isinstance(node.this, exp.Query):
        return _function(node, scope, binding)
    binding.rows |= binding.query(node.this, scope.below(), binding).rows
    return Value("boolean")


def as_condition(node: exp.Expr, scope: Scope, binding: Binding, clause: str) -> Value:
    """Check a condition of WHERE, ON or HAVING: numbers, dates and nested values that no mode of Spark accepts there are errors."""
    found = value(node, scope, binding)
    if isinstance(found.type, COMPLEX) or is_number(found.type) or found.type in ("date", "timestamp", "timestamp_ntz", "binary"):
        message = f"{clause} needs a boolean, and this has type {shown(found.type)}"
        binding.find("type-mismatch", message, node, "Compare it with something.")
    return found


_RULES: Mapping[type[exp.Expr], Callable[[exp.Expr, Scope, Binding], Value]] = {
    exp.Column: _column,
    exp.Dot: _dot,
    exp.Star: _star,
    **dict.fromkeys(_CHAINS, _chain),
    **dict.fromkeys(_COMPARISONS, _comparison),
    exp.In: _in,
    exp.Case: _case,
    exp.If: _if,
    exp.Count: _count,
    **dict.fromkeys((exp.Grouping, exp.GroupingId), _grouping),
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
    exp.Literal: _literal,
    exp.Neg: _negative,
    exp.Null: _null,
    exp.Struct: _struct,
    exp.Array: _array,
    **dict.fromkeys((exp.Map, exp.VarMap), _map),
    exp.Lambda: _lambda,
    exp.Identifier: _identifier,
    **dict.fromkeys((exp.Kwarg, exp.PropertyEQ), _keyword),
    exp.Window: _window,
    exp.Exists: _exists,
}
