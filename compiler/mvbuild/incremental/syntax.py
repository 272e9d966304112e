"""sqlglot's tree of a query -> facts about its nodes, and Refused for unknown clauses."""

from __future__ import annotations

from sqlglot import exp

from mvbuild.incremental.functions import is_aggregate, unwrapped
from mvbuild.incremental.reasons import Refused


def join_kind(join: exp.Join) -> str:
    side, kind, method = join.side.upper(), join.kind.upper(), join.args.get("method") or ""
    if method.upper() not in ("", "NATURAL") or (side, kind) not in _KINDS:
        raise unsupported(join)
    return _KINDS[(side, kind)]


_KINDS = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    ("LEFT", "SEMI"): "semi",
    ("", "SEMI"): "semi",
    ("LEFT", "ANTI"): "anti",
    ("", "ANTI"): "anti",
}


def require(node: exp.Expr, known: set[str], code: str) -> None:
    """Raise Refused if the node has a part that is not one of the known ones, since an unknown clause may change its meaning."""
    for key, value in node.args.items():
        if key not in known and value not in (None, False, [], ""):
            where = value[0] if isinstance(value, list) else value
            raise Refused(code, f"{key.strip('_').upper()} is not refreshed incrementally", where if isinstance(where, exp.Expr) else node)


def require_join_hints(select: exp.Select) -> None:
    """Refused for hints of another kind. How Spark is asked to join decides about no row."""
    hint = select.args.get("hint")
    for one in hint.expressions if hint is not None else ():
        if not isinstance(one, exp.JoinHint):
            raise unsupported(one)


def with_windows(select: exp.Select) -> exp.Select:
    """The query with the definitions of WINDOW in the place of their names."""
    if not select.args.get("windows"):
        return select
    made = select.copy()
    definitions = {one.this.name.lower(): one for one in made.args["windows"]}
    made.set("windows", None)
    for found in list(made.find_all(exp.Window)):
        alias = found.args.get("alias")
        if alias is None or found.parent_select is not made:
            continue
        definition = definitions.get(alias.name.lower())
        if definition is None or definition.args.get("alias") or any(found.args.get(key) for key in _OF_WINDOW):
            raise unsupported(found)
        found.set("alias", None)
        for key in _OF_WINDOW:
            part = definition.args.get(key)
            found.set(key, [p.copy() for p in part] if isinstance(part, list) else part.copy() if part is not None else None)
    return made


_OF_WINDOW = ("partition_by", "order", "spec")


def unsupported(node: exp.Expr) -> Refused:
    text = node.sql("spark")
    if has_query(node):
        # Its tables and columns have names of mvbuild's.
        return Refused("unsupported-operator", "a subquery in this place is not refreshed incrementally", node)
    return Refused("unsupported-operator", f"`{text if len(text) < 60 else text[:57] + '...'}` is not refreshed incrementally", node)


def has_query(node: exp.Expr) -> bool:
    return node.find(exp.Query) is not None


def aggregates_in(node: exp.Expr) -> bool:
    """Aggregate functions outside subqueries and OVER."""
    pending = list(node.expressions) if isinstance(node, exp.Select) else [node]
    while pending:
        one = pending.pop()
        if isinstance(one, exp.Query):
            continue
        if isinstance(one, exp.Window):
            pending.extend(p for p in one.iter_expressions() if p is not one.this)
            pending.extend(unwrapped(one.this).iter_expressions())
            continue
        if is_aggregate(one):
            return True
        pending.extend(one.iter_expressions())
    return False


def is_strict(value: exp.Expr) -> bool:
    """Whether it is NULL if a column in it is."""
    return all(isinstance(node, STRICT) for node in value.walk()) and value.find(exp.Column) is not None


STRICT = (exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Mul, exp.Add, exp.Sub, exp.Div, exp.Neg)


def is_one(select: exp.Select) -> bool:
    """SELECT * or SELECT 1, as in EXISTS."""
    return all(isinstance(e, exp.Star | exp.Literal) for e in select.expressions)
