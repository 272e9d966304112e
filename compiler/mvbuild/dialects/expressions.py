"""an expression of a typed query -> judged: everything below it, then itself by its signature; operands cast as Spark casts them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from sqlglot import exp

from mvbuild.dialects.engine_types import kind, trino_type
from mvbuild.dialects.judging import Judging, Refused, words
from mvbuild.dialects.signatures import OPERATORS, arguments_of, of_cast, of_function, of_minus
from mvbuild.lineage.checks import cast_type
from mvbuild.lineage.scopes import Meaning
from mvbuild.lineage.statement import HIDDEN
from mvbuild.lineage.types import COMPLEX, INTEGERS, MOST_DIGITS, Decimal, Type, as_decimal, common

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?")


def condition(of: Judging, node: exp.Expr) -> None:
    type_ = of.type_of(node)
    if type_ not in ("boolean", None):
        raise Refused(node, f"a condition of type {kind(type_)}")
    expression(of, node)


def expression(of: Judging, node: exp.Expr) -> None:
    """Judge everything below an expression, then itself. A refusal is collected, and the rest is still judged."""
    try:
        _expression(of, node)
    except Refused as exc:
        of.refuse(exc.node, exc.what, exc.help)


def _expression(of: Judging, node: exp.Expr) -> None:
    rule = _RULES.get(type(node))
    if rule is not None:
        rule(of, node)
    elif isinstance(node, exp.Query):
        raise Refused(node, "a subquery that gives one value", "Join it.")
    elif isinstance(node, exp.Func):
        function(of, node)
    else:
        raise Refused(node, words(node))


def function(of: Judging, node: exp.Expr) -> None:
    signature = of_function(node, of.type_of)
    for child in list(arguments_of(node)):
        expression(of, child)
    of.use(signature, node)


def literal(of: Judging, node: exp.Expr) -> None:
    raw = of.typed.query.sql.text[node.meta["start"] : node.meta["end"] + 1] if "start" in node.meta else ""
    if node.is_string:
        inner = raw[1:-1].replace("\\'", "'").replace('\\"', '"')
        if "${" in raw or "\\" in inner or inner != node.name or raw[:1] not in ("'", '"') or raw[:1] * 2 in raw[1:-1]:
            raise Refused(node, "a string with a backslash, a doubled quote or ${", "Write it without.")
    elif isinstance(type_ := of.type_of(node), Decimal):
        of.cast(node, type_)


def leaf(of: Judging, node: exp.Expr) -> None:
    pass


def paren(of: Judging, node: exp.Expr) -> None:
    expression(of, node.this)


def column(of: Judging, node: exp.Expr) -> None:
    meaning = of.typed.notes.names.get(id(node)) or Meaning()
    if isinstance(node.this, exp.Star):
        raise Refused(node, "`*`")
    if node.name.lower() in HIDDEN:
        raise Refused(node, f"the metadata column {node.name}")
    if meaning.fields:
        raise Refused(node, "a field of a struct")
    if not meaning.candidates and meaning.value is None:
        raise Refused(node, f"`{node.name}`")
    if meaning.is_alias and not all(id(c.attribute) in of.columns_of_from for c in meaning.candidates):
        raise Refused(node, f"'{node.name}', a name that the SELECT list gives", "Write the expression again, or use a WITH clause.")
    if meaning.is_outer and not of.in_exists:
        raise Refused(node, f"'{node.name}', a column of the query around this one")


def cast_rule(of: Judging, node: exp.Expr) -> None:
    of.allowed(node)
    to, inner = cast_type(node.args["to"]), node.this
    signature = of_cast(of.type_of(inner), to, safe=bool(node.args.get("safe")))
    name = trino_type(to)
    if name is None:
        raise Refused(node, f"`{signature}`")
    node.set("to", exp.DataType.build(name, dialect="trino"))
    if isinstance(inner, exp.Literal) and inner.is_string and _is_time(inner.name, to) and not node.args.get("safe"):
        return
    expression(of, inner)
    if not isinstance(inner, exp.Null) and of.type_of(inner) != to:
        of.use(signature, node, wrap=False)


def arithmetic(of: Judging, node: exp.Expr) -> None:
    if isinstance(node.expression, exp.Interval):
        shift(of, node)
        return
    sign = OPERATORS[type(node)]
    one, two = node.this, node.expression
    types = [of.type_of(one), of.type_of(two)]
    target, kinds = _operands(node, types)
    divisor = _not_zero(two)
    for part in (one, two):
        expression(of, part)
    left, right = node.this, node.expression
    for part, type_, wanted in zip((left, right), types, target, strict=True):
        if wanted is not None and type_ != wanted:
            of.use(of_cast(type_, wanted), part, wrap=False)
            of.cast(part, wanted)
    suffix = " not 0" if isinstance(node, (exp.Div, exp.Mod)) and divisor else ""
    if isinstance(node, exp.Div):
        # Nothing to add, neither for types nor for division by zero.
        node.set("typed", True)
        node.set("safe", False)
    of.use(f"{kinds[0]} {sign} {kinds[1]}{suffix}", node)


def _operands(node: exp.Expr, types: Sequence[Type | None]) -> tuple[list[Type | None], list[str]]:
    """The type that Spark casts both sides to, and how the signature names them."""
    if None in types or "void" in types:
        return [None, None], [kind(t) for t in types]
    if any(isinstance(t, COMPLEX) or t in ("string", "date", "timestamp", "timestamp_ntz", "boolean") for t in types):
        return [None, None], [kind(t) for t in types]
    if isinstance(node, exp.Div) and not any(isinstance(t, Decimal) for t in types):
        return ["double", "double"], ["double", "double"]
    if any(isinstance(t, Decimal) for t in types) and not any(t in ("double", "float") for t in types):
        return _decimals(node, types)
    target = common(types)
    return ([target, target], [kind(target)] * 2) if target is not None else ([None, None], [kind(t) for t in types])


def _decimals(node: exp.Expr, types: Sequence[Type | None]) -> tuple[list[Type | None], list[str]]:
    sides: list[Decimal] = []
    for part, type_ in zip((node.this, node.expression), types, strict=True):
        if type_ in INTEGERS and isinstance(part, exp.Literal):
            sides.append(Decimal(max(len(part.name.lstrip("0")), 1), 0))
        else:
            found = as_decimal(type_)
            assert found is not None
            sides.append(found)
    (p1, s1), (p2, s2) = ((d.precision, d.scale) for d in sides)
    digits = p1 + p2 + 1 if isinstance(node, exp.Mul) else max(p1 - s1, p2 - s2) + max(s1, s2) + 1
    beyond = " of more than 38 digits" if digits > MOST_DIGITS else ""
    return [*sides], ["decimal", "decimal" + beyond]


def shift(of: Judging, node: exp.Expr) -> None:
    interval, type_ = node.expression, of.type_of(node.this)
    of.allowed(interval)
    amount, unit = interval.this, interval.args.get("unit")
    if not isinstance(amount, exp.Literal) or not amount.name.isdecimal() or not isinstance(unit, exp.Var):
        raise Refused(node, "an interval that is not an integer of one unit")
    expression(of, node.this)
    of.use(f"{kind(type_)} {OPERATORS[type(node)]} INTERVAL {unit.name.upper().removesuffix('S')}", node)


def minus(of: Judging, node: exp.Expr) -> None:
    type_ = of.type_of(node.this)
    expression(of, node.this)
    of.use(of_minus(type_), node)


def joined(of: Judging, node: exp.Expr) -> None:
    types = [of.type_of(n) for n in (node.this, node.expression)]
    for part in (node.this, node.expression):
        expression(of, part)
    of.use(f"{kind(types[0])} || {kind(types[1])}", node)


def logical(of: Judging, node: exp.Expr) -> None:
    for part in (node.this, node.expression):
        condition(of, part)


def negation(of: Judging, node: exp.Expr) -> None:
    condition(of, node.this)


def comparison(of: Judging, node: exp.Expr) -> None:
    target = alike(of, [node.this, node.expression], node)
    of.use(f"{kind(target)} {OPERATORS[type(node)]} {kind(target)}", node)


def alike(of: Judging, nodes: Sequence[exp.Expr], whole: exp.Expr) -> Type | None:
    """The common type that Spark chooses for all of them; each is cast to it. None if one is not known."""
    types = [of.type_of(n) for n in nodes]
    for one in nodes:
        expression(of, one)
    if None in types:
        return None
    target = common(types)
    if target is None:
        names = sorted({kind(t) for t in types})
        raise Refused(whole, f"a comparison or choice between {' and '.join(names)}", "Cast one of them, or write a typed literal.")
    for one, type_ in zip(nodes, types, strict=True):
        if type_ not in (target, "void"):
            # The rule of a part may have put a cast around it.
            outer = one
            while isinstance(outer.parent, exp.Cast) and id(outer.parent) not in of.typed.notes.types:
                outer = outer.parent
            of.use(of_cast(type_, target), outer, wrap=False)
            of.cast(outer, target)
    return target


def column_types(of: Judging, branch: exp.Expr) -> tuple[str, ...] | None:
    """As Trino names them; None if they are not known."""
    relation = of.relation_of(branch)
    if relation is None or not relation.is_closed:
        return None
    names = [trino_type(c.value.type) or kind(c.value.type) for c in relation.columns]
    return None if "?" in names else tuple(names)


def in_rule(of: Judging, node: exp.Expr) -> None:
    of.allowed(node)
    query = node.args.get("query")
    if isinstance(node.this, exp.Tuple):
        raise Refused(node, "IN with several columns")
    if query is None:
        target = alike(of, [node.this, *node.expressions], node)
        of.use(f"{kind(target)} IN ({kind(target)}, …)", node)
        return
    type_ = of.type_of(node.this)
    expression(of, node.this)
    inner = query.this if isinstance(query, exp.Subquery) else query
    of.query(of, inner)
    found = column_types(of, inner)
    if found is not None and type_ is not None and found != (trino_type(type_),):
        raise Refused(node, "IN with a query whose column is of another type", "Cast one of them.")
    of.use(f"{kind(type_)} IN (query)", node)


def between(of: Judging, node: exp.Expr) -> None:
    of.allowed(node)
    target = alike(of, [node.this, node.args["low"], node.args["high"]], node)
    of.use(f"{kind(target)} BETWEEN {kind(target)} AND {kind(target)}", node)


def like(of: Judging, node: exp.Expr) -> None:
    pattern = node.expression
    expression(of, node.this)
    if not isinstance(pattern, exp.Literal):
        raise Refused(node, "LIKE with a pattern that is not a literal")
    expression(of, pattern)
    of.use(f"{kind(of.type_of(node.this) or 'string')} LIKE '…'", node)


def is_rule(of: Judging, node: exp.Expr) -> None:
    if not isinstance(node.expression, exp.Null):
        raise Refused(node, "IS TRUE and IS FALSE")
    expression(of, node.this)


def case(of: Judging, node: exp.Expr) -> None:
    of.allowed(node)
    branches = node.args["ifs"]
    if node.this is not None:
        target = alike(of, [node.this, *(b.this for b in branches)], node)
        of.use(f"{kind(target)} = {kind(target)}", node, wrap=False)
    else:
        for branch in branches:
            condition(of, branch.this)
    default = node.args.get("default")
    _chosen(of, node, [*(b.args["true"] for b in branches), *([default] if default is not None else [])], "CASE")


def if_rule(of: Judging, node: exp.Expr) -> None:
    of.allowed(node)
    condition(of, node.this)
    _chosen(of, node, [node.args[k] for k in ("true", "false") if node.args.get(k) is not None], "CASE")


def _chosen(of: Judging, node: exp.Expr, results: Sequence[exp.Expr], word: str) -> None:
    target = alike(of, results, node)
    of.use(f"{word} {kind(target)}", node)


def coalesce(of: Judging, node: exp.Expr) -> None:
    _chosen(of, node, [node.this, *node.expressions], "coalesce")


def nullif(of: Judging, node: exp.Expr) -> None:
    """The result has the type of the first argument, whatever it is compared with: only that type, and a plain 0, behave the same in all
    engines."""
    one, two = of.type_of(node.this), of.type_of(node.expression)
    is_zero = isinstance(node.expression, exp.Literal) and node.expression.name == "0" and two == "int"
    if None not in (one, two) and one != two and not is_zero:
        raise Refused(node, f"nullif() of {kind(one)} and {kind(two)}", "Cast the second to the type of the first.")
    expression(of, node.this)
    expression(of, node.expression)
    if one is not None:
        of.coerce(node.expression, one)
    of.use(f"nullif {kind(one)}", node)


def exists(of: Judging, node: exp.Expr) -> None:
    inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    plain = isinstance(inner, exp.Select) and not any(inner.args.get(k) for k in ("group", "having", "distinct", "limit", "with_"))
    if not plain or any(one.find(exp.AggFunc) for one in inner.expressions):
        raise Refused(node, "EXISTS of a query with more than FROM and WHERE")
    before, of.in_exists = of.in_exists, True
    inner.set("expressions", [exp.Literal.number(1)])
    of.query(of, inner)
    of.in_exists = before


def filtered(of: Judging, node: exp.Expr) -> None:
    of.allowed(node)
    condition(of, node.expression.this)
    aggregate(of, node.this, node, " FILTER")


def window(of: Judging, node: exp.Expr) -> None:
    of.allowed(node)
    for key in node.args.get("partition_by") or ():
        type_ = of.type_of(key)
        expression(of, key)
        of.use(f"GROUP BY {kind(type_)}", key)
    order = node.args.get("order")
    for ordered in order.expressions if order is not None else ():
        type_ = of.type_of(ordered.this)
        expression(of, ordered.this)
        of.use(f"ORDER BY {kind(type_)}", ordered.this)
    aggregate(of, node.this, node, " OVER")


def aggregate(of: Judging, inner: exp.Expr, node: exp.Expr, suffix: str) -> None:
    if not isinstance(inner, exp.Func):
        raise Refused(node, words(inner))
    signature = of_function(inner, of.type_of)
    for child in list(arguments_of(inner)):
        expression(of, child)
    of.use(signature + suffix, node, of.type_of(node))


_RULES: Mapping[type[exp.Expr], Callable[[Judging, exp.Expr], None]] = {
    exp.Literal: literal,
    exp.Boolean: leaf,
    exp.Null: leaf,
    exp.Paren: paren,
    exp.Neg: minus,
    exp.DPipe: joined,
    exp.Column: column,
    exp.Cast: cast_rule,
    exp.TryCast: cast_rule,
    **dict.fromkeys(_ARITHMETIC, arithmetic),
    **dict.fromkeys(_COMPARISONS, comparison),
    exp.And: logical,
    exp.Or: logical,
    exp.Not: negation,
    exp.In: in_rule,
    exp.Between: between,
    exp.Like: like,
    exp.Is: is_rule,
    exp.Case: case,
    exp.If: if_rule,
    exp.Coalesce: coalesce,
    exp.Nullif: nullif,
    exp.Exists: exists,
    exp.Filter: filtered,
    exp.Window: window,
}


def _not_zero(node: exp.Expr) -> bool:
    if isinstance(node, exp.Paren):
        return _not_zero(node.this)
    if isinstance(node, exp.Literal) and not node.is_string:
        return float(node.name) != 0
    return (
        isinstance(node, exp.Nullif)
        and isinstance(node.expression, exp.Literal)
        and not node.expression.is_string
        and float(node.expression.name) == 0
    )


def _is_time(text: str, type_: Type | None) -> bool:
    """A literal that every engine reads in the same way."""
    pattern, form = (_DATE, "%Y-%m-%d") if type_ == "date" else (_TIMESTAMP, "%Y-%m-%d %H:%M:%S")
    if type_ not in ("date", "timestamp_ntz") or not pattern.fullmatch(text):
        return False
    try:
        datetime.strptime(text.partition(".")[0], form)
    except ValueError:
        return False
    return True
