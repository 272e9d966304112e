"""a query's tree + the Scope around it -> Relation: its columns, and what decides its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from mvbuild.diagnostics import did_you_mean
from mvbuild.lineage.binding import Binding, place_of
from mvbuild.lineage.checks import are_comparable, shown
from mvbuild.lineage.column_names import chosen, names_of, resolved
from mvbuild.lineage.expressions import as_condition, value, window_value
from mvbuild.lineage.generators import generated, is_generator
from mvbuild.lineage.naming import output_name
from mvbuild.lineage.scopes import Scope, Tables, meaning
from mvbuild.lineage.sources import from_tables, item, renamed, star_columns, values_relation
from mvbuild.lineage.types import Struct, common
from mvbuild.lineage.values import NOTHING, UNKNOWN, Attribute, Base, Named, Output, Relation, Value, attributes, joined
from mvbuild.parse import placeholder

_MOST_ROUNDS = 5
_MOST_COLUMNS = 20_000
"""The limit of columns in a query: each star over a join can double them."""


def query(node: exp.Expr, scope: Scope, binding: Binding) -> Relation:
    """Bind any query. What decides its rows does not count for the SELECT around it unless the caller adds it."""
    around, binding.rows = binding.rows, set()
    relation = _query(node, _with(node, scope, binding), binding)
    if len(relation.columns) > _MOST_COLUMNS:
        relation = UNKNOWN
    relation = replace(relation, rows=relation.rows | binding.rows)
    binding.rows = around
    if binding.notes is not None:
        binding.notes.relations[id(node)] = relation
    return relation


def _query(node: exp.Expr, scope: Scope, binding: Binding) -> Relation:
    if isinstance(node, exp.Select):
        return _select(node, scope, binding)
    if isinstance(node, exp.SetOperation):
        return _ordered(node, _set_operation(node, scope, binding), binding)
    if isinstance(node, exp.Subquery):
        if isinstance(node.this, exp.Table):
            tables = item(node.this, scope, binding)
            return Relation(tables.star, tables.rest, tables.rows)
        return _ordered(node, query(node.this, scope, binding), binding)
    if isinstance(node, exp.Values):
        return values_relation(node, scope, binding)
    return UNKNOWN


# WITH


def _with(node: exp.Expr, scope: Scope, binding: Binding) -> Scope:
    clause = node.args.get("with_")
    if not isinstance(clause, exp.With):
        return scope
    for cte in clause.expressions:
        name = cte.alias.lower()
        is_recursive = bool(clause.args.get("recursive")) and isinstance(cte.this.unnest(), exp.SetOperation)
        relation = _recursive(cte, scope, binding) if is_recursive else _cte(cte, query(cte.this, scope, binding), binding)
        scope = replace(scope, ctes={**scope.ctes, name: relation})
    return scope


def _cte(cte: exp.Expr, relation: Relation, binding: Binding) -> Relation:
    alias = cte.args.get("alias")
    return renamed(relation, alias.columns, binding) if isinstance(alias, exp.TableAlias) and alias.columns else relation


def _recursive(cte: exp.Expr, scope: Scope, binding: Binding) -> Relation:
    """Bind a recursive query: first its anchor, then again with the columns found so far, until nothing is added."""
    whole = cte.this.unnest()
    known = _cte(cte, query(whole.this, scope, binding), binding)
    for _ in range(_MOST_ROUNDS):
        inner = replace(scope, ctes={**scope.ctes, cte.alias.lower(): known})
        found = _cte(cte, query(cte.this, inner, binding), binding)
        if _same(found, known):
            break
        known = found
    return known


def _same(one: Relation, two: Relation) -> bool:
    return one.rows == two.rows and one.rest == two.rest and [c.value for c in one.columns] == [c.value for c in two.columns]


# Set operations


def _set_operation(node: exp.Expr, scope: Scope, binding: Binding) -> Relation:
    """Bind `a UNION b UNION c`, without one recursion per operator."""
    spine: list[exp.Expr] = []
    while isinstance(node, exp.SetOperation) and (not spine or not node.args.get("with_")):
        spine.append(node)
        node = node.this
    found = query(node, scope, binding)
    for operation in reversed(spine):
        other = query(operation.expression, scope, binding)
        found = _combined(operation, found, other, binding)
    return found


def _combined(node: exp.Expr, one: Relation, two: Relation, binding: Binding) -> Relation:
    rows = one.rows | two.rows
    if not (one.is_closed and two.is_closed):
        return Relation((), (None,), rows)
    if node.args.get("by_name"):
        return _by_name(one, two, rows)
    if len(one.columns) != len(two.columns):
        message = f"This query has {_columns(two)}, and the one that it is combined with has {_columns(one)}"
        binding.find("column-count", message, node.expression, "Give both the same columns, in the same order.")
        return Relation((), (None,), rows)
    is_union = isinstance(node, exp.Union)
    made = []
    for ours, theirs in zip(one.columns, two.columns, strict=True):
        _check_types(node, ours, theirs, binding)
        parts = (ours.value, theirs.value) if is_union else (ours.value,)
        made.append((ours.name, joined(parts, common((ours.value.type, theirs.value.type))), ours.place))
    if not is_union or node.args.get("distinct"):
        rows = rows.union(*(c.value.bases for c in (*one.columns, *two.columns)))
    return Relation(tuple(attributes(made)), (), rows)


def _columns(relation: Relation) -> str:
    return f"{len(relation.columns)} column{'s' * (len(relation.columns) != 1)}"


def _by_name(one: Relation, two: Relation, rows: frozenset[Base]) -> Relation:
    theirs = {c.key: c for c in two.columns}
    if None in theirs or {c.key for c in one.columns} != set(theirs):
        return Relation((), (None,), rows)
    made = [(c.name, joined((c.value, (o := theirs[c.key]).value), common((c.value.type, o.value.type))), c.place) for c in one.columns]
    return Relation(tuple(attributes(made)), (), rows)


def _check_types(node: exp.Expr, ours: Output, theirs: Output, binding: Binding) -> None:
    if are_comparable(ours.value.type, theirs.value.type):
        return
    place = theirs.place
    name = f"'{ours.name}'" if ours.name else "A column"
    first, second = (shown(o.value.type) for o in (ours, theirs))
    message = f"{name} has type {first} in the first query and type {second} in this one"
    binding.find_at("type-mismatch", message, place or place_of(node.expression), "Cast one of them.")


def _ordered(node: exp.Expr, relation: Relation, binding: Binding) -> Relation:
    """ORDER BY with LIMIT decides which rows there are. Unknown names are not reported here, because Spark searches more scopes."""
    order = node.args.get("order")
    if order is None or not (node.args.get("limit") or node.args.get("offset")):
        return relation
    quiet = replace(binding, findings={})
    scope = Scope(tables=Tables(star=relation.columns, rest=relation.rest))
    return replace(relation, rows=relation.rows.union(*(_key(o, relation.columns, scope, quiet).bases for o in order.expressions)))


# SELECT


def _select(node: exp.Expr, around: Scope, binding: Binding) -> Relation:
    tables = from_tables(node, around, binding)
    scope = around.inner(tables)
    scope = replace(scope, parameters=frozenset(), windows=_windows(node, scope, binding))
    relation = _projection(node, scope, binding)
    where = node.args.get("where")
    if where is not None:
        binding.rows |= as_condition(where.this, scope, binding, "WHERE").bases
    outputs = relation.columns
    _group(node, outputs, scope, binding)
    named = replace(scope, first=Named(outputs))
    for clause in ("having", "qualify"):
        part = node.args.get(clause)
        if part is not None:
            binding.rows |= as_condition(part.this, named, binding, clause.upper()).bases
    for clause in ("order", "sort", "cluster", "distribute"):
        _order(node, clause, outputs, named, binding)
    if node.args.get("distinct"):
        binding.rows |= NOTHING.union(*(c.value.bases for c in outputs))
    return replace(relation, rows=tables.rows)


def _windows(node: exp.Expr, scope: Scope, binding: Binding) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for window in node.args.get("windows") or ():
        found[window.name.lower()] = window_value(window, replace(scope, windows=found), binding)
    return found


def _group(node: exp.Expr, outputs: Sequence[Output], scope: Scope, binding: Binding) -> None:
    group = node.args.get("group")
    if group is None:
        return
    if group.args.get("all"):
        plain = [e for e in node.expressions if e.find(exp.AggFunc) is None]
        binding.rows |= joined(value(e.unalias(), scope, binding) for e in plain if not e.is_star).bases
        return
    seen = replace(scope, last=Named(outputs))
    parts = [p for name in ("expressions", "cube", "rollup", "grouping_sets") for p in group.args.get(name) or ()]
    for part in parts:
        if isinstance(part, exp.Expr):
            binding.rows |= _key(part, outputs, seen, binding).bases


def _order(node: exp.Expr, clause: str, outputs: Sequence[Output], scope: Scope, binding: Binding) -> None:
    order = node.args.get(clause)
    if order is None:
        return
    decides = bool(node.args.get("limit") or node.args.get("offset"))
    for part in order.expressions:
        found = _key(part, outputs, scope, binding)
        if decides and clause == "order":
            binding.rows |= found.bases


def _key(node: exp.Expr, outputs: Sequence[Output], scope: Scope, binding: Binding) -> Value:
    """A key of GROUP BY or ORDER BY: an expression, the position of a column, or ALL."""
    inner = node.this if isinstance(node, exp.Ordered) else node
    if isinstance(inner, exp.Literal) and inner.is_int:
        index = int(inner.name) - 1
        return outputs[index].value if 0 <= index < len(outputs) else Value()
    if isinstance(inner, exp.Column) and inner.name.lower() == "all" and len(inner.parts) == 1 and not inner.this.quoted:
        return joined(o.value for o in outputs)
    return value(inner, scope, binding)


# The SELECT list


def _projection(node: exp.Expr, scope: Scope, binding: Binding) -> Relation:
    if len(node.expressions) > _MOST_COLUMNS:
        return UNKNOWN
    outputs: list[Output] = []
    rest: list[int | None] = []
    rows: frozenset[Base] = NOTHING
    earlier = Named()
    scope = scope.after(earlier)
    for written in node.expressions:
        relation = _item(written, scope, binding)
        outputs += relation.columns
        earlier.add(relation.columns)
        rest += relation.rest
        rows |= relation.rows
    binding.rows |= rows
    return Relation(tuple(outputs), tuple(rest))


def _item(node: exp.Expr, scope: Scope, binding: Binding) -> Relation:
    inner = node.this if isinstance(node, (exp.Alias, exp.Aliases)) else node
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        return _star(node, scope, binding)
    if isinstance(node, exp.QueryTransform):
        return UNKNOWN
    if is_generator(inner):
        return generated(inner, list(_given_names(node)), scope, binding)
    if isinstance(node, exp.Aliases):
        return UNKNOWN
    return Relation((_output(node, inner, scope, binding),))


def _given_names(node: exp.Expr) -> Iterator[str]:
    if isinstance(node, exp.Aliases):
        yield from (n.name for n in node.expressions)
    elif isinstance(node, exp.Alias):
        yield node.alias


def _output(node: exp.Expr, inner: exp.Expr, scope: Scope, binding: Binding) -> Output:
    if isinstance(node, exp.Alias):
        alias = node.args["alias"]
        if isinstance(alias, exp.Identifier):
            return Output(alias.name, value(inner, scope, binding), place_of(alias) or place_of(inner), Attribute())
        # This is how the parser represents `variant:path`.
        return Output(None, value(inner, scope, binding).typed(None), place_of(inner), Attribute())
    if isinstance(node, exp.Column):
        found, attribute = resolved(node, scope, binding)
        return Output(node.name, found, place_of(node), attribute)
    return Output(output_name(node), value(node, scope, binding), place_of(node), Attribute())


def _star(node: exp.Expr, scope: Scope, binding: Binding) -> Relation:
    found = star_columns(scope.tables, node, binding)
    if found is not None:
        return found
    parts = [p for p in names_of(node) if isinstance(p, exp.Identifier)]
    names = [p.name for p in parts]
    known = meaning(scope, names)
    if known.candidates:
        struct = chosen(known, names, parts, binding)
        return _fields(struct)
    if known.value is None:
        tables = [s.spellings[0][-1] for s in scope.tables.sources if s.spellings and s.spellings[0]]
        binding.find(
            "unknown-column",
            f"Unknown table or struct '{placeholder.shown(names[0])}'",
            parts[0],
            did_you_mean(names[0], tables),
        )
    return UNKNOWN


def _fields(struct: Value) -> Relation:
    if not isinstance(struct.type, Struct):
        return UNKNOWN
    return Relation(tuple(attributes((name, struct.typed(type_), None) for name, type_ in struct.type.fields)))
