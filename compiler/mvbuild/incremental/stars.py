"""`*`, `alias.*` and `* EXCEPT (...)` + the scope -> the columns that they stand for, also behind JOIN ... USING and NATURAL JOIN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from mvbuild.incremental.reasons import Refused
from mvbuild.incremental.scopes import Scope, Shown
from mvbuild.incremental.syntax import require, unsupported


def starred(scope: Scope, node: exp.Expr) -> list[tuple[str, exp.Expr]]:
    """(name, value) of each column. `node`: the star, or a column whose name is one."""
    star = node.this if isinstance(node, exp.Column) else node
    require(star, {"except_"}, "unsupported-operator")
    alias = node.table.lower() if isinstance(node, exp.Column) else None
    chosen = list(scope.star) if alias is None else [one for one in (*scope.hidden, *scope.star) if one.alias == alias]
    if not chosen:
        raise Refused("unsupported-operator", "the columns of a star are unknown", node)
    for excepted in star.args.get("except_") or ():
        left = [one for one in chosen if not _is(one, excepted)]
        if len(left) != len(chosen) - 1:
            raise unsupported(excepted)
        chosen = left
    return [(one.name, one.value.copy()) for one in chosen]


def _is(one: Shown, excepted: exp.Expr) -> bool:
    names = [part.name.lower() for part in excepted.parts] if isinstance(excepted, exp.Column) else [excepted.name.lower()]
    return names in ([one.name.lower()], [one.alias, one.name.lower()])


def common_names(left: Scope, right: Scope) -> list[exp.Expr]:
    """The columns by which NATURAL JOIN joins."""
    others = {one.name.lower() for one in right.star}
    return [exp.to_identifier(one.name) for one in left.star if one.name.lower() in others]


def joined_by(names: Sequence[str], left: Scope, right: Scope, both: Scope, kind: str) -> Scope:
    """`both` after JOIN ... USING: `*` begins with the common columns, one of each pair is out of it. As Spark resolves it."""
    sides = {"left": left.star, "right": right.star}
    wanted = [name.lower() for name in names]
    pairs = {side: {one.name.lower(): one for one in shown if one.name.lower() in wanted} for side, shown in sides.items()}
    others = [one for shown in sides.values() for one in shown if one.name.lower() not in wanted]
    if kind == "full":
        common = [Shown("", pairs["left"][name].name, both.merged[name]) for name in wanted]
        out = [*pairs["left"].values(), *pairs["right"].values()]
    else:
        kept, gone = ("right", "left") if kind == "right" else ("left", "right")
        common, out = [pairs[kept][name] for name in wanted], list(pairs[gone].values())
    return replace(both, shown=(*common, *others), hidden=(*left.hidden, *right.hidden, *out))
