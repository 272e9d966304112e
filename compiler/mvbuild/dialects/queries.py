"""a typed query + the proofs of an engine -> Judging: casts where the engine has other types, and what is not proven, with its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from mvbuild.dialects.engine_types import kind
from mvbuild.dialects.expressions import column_types, condition, expression
from mvbuild.dialects.judging import Judging, Refusal, Refused, words
from mvbuild.dialects.proven import Proofs
from mvbuild.lineage.statement import TypedQuery


def judged(typed: TypedQuery, proofs: Proofs) -> Judging:
    """Judge a query. Changes the tree of `typed`."""
    found = Judging(typed=typed, proofs=proofs, query=query)
    judge(found)
    return found


def judge(of: Judging) -> None:
    names = of.typed.notes.names.values()
    of.columns_of_from = {id(c.attribute) for m in names if not m.is_alias for c in m.candidates}
    try:
        query(of, of.typed.tree)
    except Refused as exc:
        of.refuse(exc.node, exc.what, exc.help)


def query(of: Judging, node: exp.Expr) -> None:
    if node.args.get("order") is not None and not (node.args.get("limit") or node.args.get("offset")):
        node.set("order", None)  # Without a limit, an order does not affect the rows.
    node.set("hint", None)
    of.allowed(node)
    for cte in _ctes(of, node):
        of.allowed(cte)
        query(of, cte.this)
    if isinstance(node, exp.Select):
        select(of, node)
    elif isinstance(node, exp.SetOperation):
        set_operation(of, node)
    elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
        query(of, node.this)
    else:
        raise Refused(node, words(node))


def _ctes(of: Judging, node: exp.Expr) -> Sequence[exp.Expr]:
    clause = node.args.get("with_")
    if clause is None:
        return ()
    of.allowed(clause)
    found: list[exp.Expr] = clause.expressions
    return found


def select(of: Judging, node: exp.Select) -> None:
    clause = node.args.get("from_")
    items = ([clause.this] if clause is not None else []) + [j.this for j in node.args.get("joins") or ()]
    for one in items:
        item(of, one)
    for one in node.args.get("joins") or ():
        join(of, one)
    outputs = list(node.expressions)
    _named(of, node, outputs)
    for output in outputs:
        if output.is_star:
            star(output, items)
        else:
            expression(of, output.unalias())
    group(of, node, outputs)
    for name in ("where", "having"):
        if node.args.get(name) is not None:
            condition(of, node.args[name].this)
    if node.args.get("distinct") is not None:
        of.allowed(node.args["distinct"])
        distinct(of, node, node)


def _named(of: Judging, node: exp.Expr, outputs: Sequence[exp.Expr]) -> None:
    """Engines choose different names for unnamed columns."""
    relation = of.typed.notes.relations.get(id(node))
    if relation is None or any(o.is_star for o in outputs) or len(relation.columns) != len(outputs):
        return
    for output, column in zip(outputs, relation.columns, strict=True):
        if isinstance(output, (exp.Alias, exp.Column)):
            continue
        if column.name is None:
            raise Refused(output, "a column without a name", "Give it a name with AS.")
        made = exp.Alias(this=exp.Null(), alias=exp.to_identifier(column.name, quoted=True))
        output.replace(made)
        made.set("this", output)


def star(node: exp.Expr, items: Iterable[exp.Expr]) -> None:
    star = node.this if isinstance(node, exp.Column) else node
    if any(star.args.values()):
        raise Refused(node, "`* EXCEPT`")
    if any(isinstance(i, exp.Table) and i.args.get("db") for i in items):
        help = "List the columns: they can be moved or added in a table while the view stays as it is."
        raise Refused(node, "`*` of a table", help)


def item(of: Judging, node: exp.Expr) -> None:
    if not isinstance(node, (exp.Table, exp.Subquery)) or node.args.get("joins"):
        raise Refused(node, words(node))
    of.allowed(node)
    alias = node.args.get("alias")
    if alias is not None:
        of.allowed(alias)
    if isinstance(node, exp.Subquery):
        query(of, node.this)
    elif not isinstance(node.this, exp.Identifier):
        raise Refused(node, "a table function")
    elif alias is not None and alias.columns and node.args.get("db"):
        raise Refused(node, "names for the columns of a table by their position", "Select them by name in a WITH clause.")


def join(of: Judging, node: exp.Expr) -> None:
    of.allowed(node)
    kinds = {word.upper() for word in (node.text("side"), node.text("kind")) if word}
    if not kinds <= {"LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS"}:
        raise Refused(node, f"{' '.join(sorted(kinds))} JOIN", "Write EXISTS or NOT EXISTS.")
    on = node.args.get("on")
    if on is not None:
        if "FULL" in kinds and not all(isinstance(one, exp.EQ) for one in _conjuncts(on)):
            raise Refused(node, "FULL JOIN on more than equalities")
        condition(of, on)
    elif kinds & {"LEFT", "RIGHT", "FULL"}:
        raise Refused(node, "an outer join without ON")


def group(of: Judging, node: exp.Expr, outputs: Sequence[exp.Expr]) -> None:
    group = node.args.get("group")
    if group is None:
        return
    of.allowed(group)
    for key in list(group.expressions):
        if isinstance(key, exp.Literal) and key.is_int:
            at = int(key.name) - 1
            if not 0 <= at < len(outputs) or any(o.is_star for o in outputs):
                raise Refused(key, "this number in GROUP BY")
            of.use(f"GROUP BY {kind(of.type_of(outputs[at].unalias()))}", key)
        else:
            type_ = of.type_of(key)
            expression(of, key)
            of.use(f"GROUP BY {kind(type_)}", key)


def distinct(of: Judging, query: exp.Expr, node: exp.Expr) -> None:
    """All columns of a query are compared with each other."""
    relation = of.relation_of(query)
    if relation is None or not relation.is_closed:
        of.unknown.append(Refusal("DISTINCT of columns that are not known", *of.place(node)))
        return
    for column in relation.columns:
        of.use(f"DISTINCT {kind(column.value.type)}", node)


def set_operation(of: Judging, node: exp.SetOperation) -> None:
    """The branches must have exactly the same types, because engines widen them differently."""
    branches = (node.this, node.expression)
    for branch in branches:
        query(of, branch)
    found = [column_types(of, b) for b in branches]
    if None in found:
        of.unknown.append(Refusal("columns that are not known", *of.place(node)))
    elif found[0] != found[1]:
        one, two = next((a, b) for a, b in zip(found[0] or (), found[1] or (), strict=False) if a != b)
        raise Refused(node.expression, f"a branch with a column of another type ({two}, not {one})", "Cast it in this branch.")
    if node.args.get("distinct") or not isinstance(node, exp.Union):
        for branch in branches:
            distinct(of, branch, node)
    word = f"{node.key.upper()}{'' if node.args.get('distinct') else ' ALL'}"
    of.use(word, node)


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this)
    return [*_conjuncts(node.this), *_conjuncts(node.expression)] if isinstance(node, exp.And) else [node]
