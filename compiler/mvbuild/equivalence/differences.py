"""two canonical trees -> Findings: what differs between them, where that is certain.

A class is only given if it is certain; every other edit means that rows may change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from sqlglot import TokenType, exp

from mvbuild.dataclass import dataclass
from mvbuild.equivalence.canonical_tree import Canonical
from mvbuild.equivalence.column_changes import ColumnChange, column_changes
from mvbuild.equivalence.edit import Finding
from mvbuild.equivalence.filters import direction
from mvbuild.equivalence.resolve import relations
from mvbuild.equivalence.tidy import CLAUSES, conjunction, conjuncts, is_inner, readable, shown
from mvbuild.parse.dialect import tokenize


def is_same(before: Canonical, after: Canonical, old: str, new: str) -> bool:
    """Whether both are the same query. The texts are compared as well, because sqlglot reads different functions as one."""
    return before.is_same(after) and _same_functions(old, new)


def certain_differences(before: Canonical, after: Canonical, old: str, new: str) -> tuple[Finding, ...] | None:
    """Everything that differs; None if it is not certain that nothing else does."""
    columns = column_changes(before.tree, after.tree)
    pair = _Pair(old=before.tree.copy(), new=after.tree.copy(), columns=columns)
    if (before.is_whole, before.unnamed) != (after.is_whole, after.unnamed) or not pair.is_comparable():
        return None
    filters = pair.take_filters()
    if not pair.take_columns() or filters is None or shown(pair.old) != shown(pair.new) or not _same_functions(old, new, more=True):
        return None
    return (*column_findings(columns), *filters) or None


def column_findings(columns: Sequence[ColumnChange]) -> Iterator[Finding]:
    for change in columns:
        if change.what == "removed":
            yield Finding(kind="breaking", message=f"column '{change.name}' removed", columns=(change.name,))
        elif change.what == "renamed":
            yield Finding(kind="breaking", message=f"column '{change.name}' renamed to '{change.new}'", columns=(change.name,))
        elif change.what == "retyped":
            message = f"column '{change.name}' is now {change.new}, and was {change.old}"
            yield Finding(kind="breaking", message=message, columns=(change.name,))
        elif change.what == "respelled":
            yield Finding(kind="rows", message=f"column '{change.name}' is spelled '{change.new}'")
        elif change.what == "changed":
            yield Finding(kind="rows", message=f"column '{change.name}' is computed differently")
    added = [c for c in columns if c.what == "added"]
    if added:
        names = ", ".join(f"'{c.name}'" for c in added)
        where = " at the end" if all(c.is_last for c in added) else ""
        yield Finding(kind="columns-added", message=f"column{'s' * (len(added) > 1)} {names} added{where}")
    if any(c.what == "moved" for c in columns):
        yield Finding(kind="reordered", message="its columns are in a different order")


# --- a pair of trees from which compared parts are removed ----------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Pair:
    old: exp.Expr
    new: exp.Expr
    columns: Sequence[ColumnChange]

    def is_comparable(self) -> bool:
        return len(list(self.old.find_all(exp.Select))) == len(list(self.new.find_all(exp.Select)))

    def take_filters(self) -> list[Finding] | None:
        """The difference between conditions at the same place; None if its effect is not certain. The conditions are removed."""
        findings: list[Finding] = []
        for mine, its in zip(self.old.find_all(exp.Select), self.new.find_all(exp.Select), strict=True):
            for clause in CLAUSES:
                before, after = conjuncts(mine.args.get(clause)), conjuncts(its.args.get(clause))
                if Counter(map(shown, before)) == Counter(map(shown, after)):
                    continue
                way = direction(before, after)
                if way is None or not _is_monotone(mine) or not _is_monotone(its):
                    return None
                findings.append(Finding(kind=f"filter-{way}", message=_describe_clause(clause, before, after, mine)))  # type: ignore[arg-type]
                _keep(mine, clause, after)
                _keep(its, clause, before)
        return findings if len({f.kind for f in findings}) < 2 else None

    def take_columns(self) -> bool:
        """The difference between columns of the result. False if columns affect rows."""
        if not any(c.what != "moved" for c in self.columns):
            return self._order()
        for tree, other in ((self.old, self.new), (self.new, self.old)):
            if not isinstance(tree, exp.Select) or tree.args.get("distinct") or not isinstance(other, exp.Select):
                return False
        if _aggregates(self.old) != _aggregates(self.new) or any(_generates(t) for t in (self.old, self.new)):
            return False
        assert isinstance(self.old, exp.Select)
        assert isinstance(self.new, exp.Select)
        mine, its = _same_projections(self.old, self.columns, old=True), _same_projections(self.new, self.columns, old=False)
        self.old.set("expressions", mine)
        self.new.set("expressions", its)
        _prune(self.old)
        _prune(self.new)
        return True

    def _order(self) -> bool:
        for tree in (self.old, self.new):
            if any(c.what == "moved" for c in self.columns):
                if not isinstance(tree, exp.Select):
                    return False
                tree.set("expressions", sorted(tree.expressions, key=lambda p: p.alias_or_name))
            _prune(tree)
        return True


def _keep(select: exp.Select, clause: str, others: Sequence[exp.Expr]) -> None:
    """The conditions that the other version has as well."""
    known = {shown(c) for c in others}
    kept = [c for c in conjuncts(select.args.get(clause)) if shown(c) in known]
    kinds = {"where": exp.Where, "having": exp.Having, "qualify": exp.Qualify}
    select.set(clause, kinds[clause](this=conjunction(kept)) if kept else None)


def _same_projections(select: exp.Select, columns: Sequence[ColumnChange], *, old: bool) -> list[exp.Expr]:
    """The projections that are the same in both, in the order of their names."""
    gone = {(c.name if old or c.what not in ("renamed", "respelled") else c.new) for c in columns if c.what != "moved"}
    return sorted((p for p in select.expressions if p.alias_or_name not in gone), key=lambda p: p.alias_or_name)


def _aggregates(select: exp.Expr) -> bool:
    """Whether it has one row per group, or only one."""
    assert isinstance(select, exp.Select)
    own = (a for p in select.expressions for a in p.find_all(exp.AggFunc) if a.find_ancestor(exp.Window, exp.Select) in (None, select))
    return bool(select.args.get("group")) or any(True for _ in own)


def _generates(select: exp.Expr) -> bool:
    """Whether a column may produce several rows from one."""
    assert isinstance(select, exp.Select)
    names = ("inline", "inline_outer", "stack", "json_tuple", "posexplode", "posexplode_outer", "explode", "explode_outer")
    found = (f for p in select.expressions for f in p.find_all(exp.Func))
    return any(isinstance(f, exp.UDTF) or (f.name if isinstance(f, exp.Anonymous) else f.sql_name()).lower() in names for f in found)


def _prune(tree: exp.Expr) -> None:
    """Remove columns of subqueries that are never read."""
    for select in tree.find_all(exp.Select):
        used = {(c.table, c.name) for c in select.find_all(exp.Column)}
        if any(not table for table, _ in used) or any(p.is_star for p in select.expressions):
            continue
        for relation in relations(select):
            inner = relation.this if isinstance(relation, exp.Subquery) else None
            if not isinstance(inner, exp.Select) or inner.args.get("distinct") or any(p.is_star for p in inner.expressions):
                continue
            kept = [p for p in inner.expressions if (relation.alias, p.alias_or_name) in used]
            if kept and (inner.args.get("group") or not _aggregates(inner)):
                inner.set("expressions", sorted(kept, key=shown))


def _is_monotone(select: exp.Select) -> bool:
    """Whether fewer rows of this SELECT always mean fewer rows for the queries around it, up to aggregates."""
    node: exp.Expr = select
    while node.parent is not None:
        parent = node.parent
        if isinstance(parent, exp.SetOperation):
            if isinstance(parent, exp.Except) and parent.expression is node:
                return False
        elif isinstance(parent, exp.Join):
            around = parent.parent
            if (
                not isinstance(around, exp.Select)
                or not (is_inner(parent) or parent.args.get("side") == "RIGHT")
                or not _later(around, parent)
            ):
                return False
        elif isinstance(parent, exp.From):
            joins = (parent.parent.args.get("joins") or []) if parent.parent else []
            if not all(is_inner(j) or (j.args.get("side") == "LEFT") for j in joins):
                return False
        elif not isinstance(parent, (exp.Subquery, exp.Select)) or (isinstance(parent, exp.Select) and isinstance(node, exp.Query)):
            return False
        node = parent
    return True


def _later(select: exp.Select, join: exp.Join) -> bool:
    """Whether the following joins keep the rows of the left side."""
    joins = select.args.get("joins") or []
    behind = joins[[id(j) for j in joins].index(id(join)) + 1 :]
    return all(is_inner(j) or j.args.get("side") == "LEFT" for j in behind)


def _describe_clause(clause: str, before: Sequence[exp.Expr], after: Sequence[exp.Expr], select: exp.Select) -> str:
    mine, its = {shown(c) for c in before}, {shown(c) for c in after}
    gone = [readable(c) for c in before if shown(c) not in its]
    new = [readable(c) for c in after if shown(c) not in mine]
    asked, dropped = (" and ".join(f"`{text}`" for text in texts) for texts in (new, gone))
    if new and gone:
        verb = f"requires {asked} instead of {dropped}"
    else:
        verb = f"also requires {asked}" if new else f"no longer requires {dropped}"
    around = select.find_ancestor(exp.Select)
    computes = (clause == "where" and _aggregates(select)) or (clause != "qualify" and select.find(exp.Window) is not None)
    while not computes and around is not None:
        computes = _aggregates(around) or around.find(exp.Window) is not None
        around = around.find_ancestor(exp.Select)
    sentence = f"{clause.upper()} {verb}"
    if any(True for _ in select.root().find_all(exp.Limit)):
        return f"{sentence}; LIMIT may choose other rows"
    return f"{sentence}; what is computed from these rows changes" if computes else sentence


# --- words -------------------------------------------------------------------------------------------------------------------------


_NO_FUNCTIONS = frozenset(
    "in and or as on over from join where select exists when then else not by values with union all between having if case count "
    "cast".split()
)


def _same_functions(old: str, new: str, *, more: bool = False) -> bool:
    """Whether no function replaces another one that sqlglot parses to the same node. With `more`, either side may have further ones."""
    mine, its = _functions(old), _functions(new)
    return not (mine - its and its - mine) if more else mine == its


def _functions(sql: str) -> set[str]:
    """The words before brackets, without those that may disappear when the same query is written differently."""
    tokens = tokenize(sql)
    words = {a.text.lower() for a, b in pairwise(tokens) if b.token_type == TokenType.L_PAREN and re.fullmatch(r"\w+", a.text)}
    aliases = {b.text.lower() for a, b in pairwise(tokens) if a.token_type in (TokenType.WITH, TokenType.ALIAS)}
    return words - _NO_FUNCTIONS - aliases
