"""two texts of one query -> Edit: the first rung on which they are shown to be the same query, or what differs.

The rungs are: the same tokens, the same but for names inside, the same tree after rewriting, and the same plans in Spark. The first three
need only the texts, and columns of tables if they are known. `proven` asks Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from mvbuild.equivalence.canonical_text import same_but_names
from mvbuild.equivalence.canonical_tree import canonical
from mvbuild.equivalence.clauses import changed_clauses
from mvbuild.equivalence.column_changes import column_changes
from mvbuild.equivalence.differences import certain_differences, column_findings, is_same
from mvbuild.equivalence.edit import CLASSES, Edit, Finding
from mvbuild.equivalence.inlined import FAILURES
from mvbuild.equivalence.resolve import Schema
from mvbuild.equivalence.spark_proof import missing_proof
from mvbuild.parse.fingerprint import fingerprint, folded
from mvbuild.ports.engine import Engine

UNKNOWN: Mapping[str, Schema] = {}


def compare(old: str, new: str, schema: Mapping[str, Schema] = UNKNOWN) -> Edit:
    """The edit from one text to the other; never raises. `schema`: full name of a table, in any case -> its columns.

    >>> compare("SELECT a FROM t", "select a from t").rung
    'tokens'
    >>> compare("SELECT o.a FROM t AS o", "SELECT x.a FROM t AS x").rung
    'names'
    >>> compare("SELECT a FROM t WHERE a > 1", "SELECT a FROM t WHERE 1 < a").rung
    'rewriting'
    >>> compare("SELECT a FROM t", "SELECT a FROM t WHERE a = 1").message
    'WHERE also requires `a = 1`'
    """
    if fingerprint(old) == fingerprint(new):
        return Edit(rung="tokens", findings=(Finding(kind="formatting", message="only formatting and comments"),))
    names = _only_names(old, new)
    try:
        before, after = canonical(old, schema), canonical(new, schema)
        if is_same(before, after, old, new):
            message = names or "written differently, but the same query"
            return Edit(rung="names" if names else "rewriting", findings=(Finding(kind="equal", message=message),), only_names=bool(names))
        found = None if names else certain_differences(before, after, old, new)
        trees = (before.tree, after.tree)
    except FAILURES:
        found, trees = None, None
    findings = found or _uncertain(old, new, names, trees)
    return Edit(rung="different", findings=_most_important_first(findings), only_names=bool(names))


def proven(edit: Edit, engine: Engine, old_sql: str, new_sql: str, *, has_travel: bool = False) -> Edit:
    """The edit on the rung of a proof, if Spark gives one for the same texts with every table at a snapshot; otherwise the edit itself.
    Raises EngineError."""
    if missing_proof(engine, old_sql, new_sql, has_travel=has_travel):
        return edit
    return replace(edit, rung="proof", findings=(Finding(kind="equal", message=edit.findings[0].message),))


def _only_names(old: str, new: str) -> str:
    """A clause if nothing but names inside differs; otherwise empty."""
    if folded(old) == folded(new):
        return "only the case of names"
    return "only names, or the arrangement of CTEs and aliases inside" if same_but_names(old, new) else ""


def _uncertain(old: str, new: str, names: str, trees: tuple[exp.Expr, exp.Expr] | None) -> Sequence[Finding]:
    """Rows may change, whatever else was done. What happened to the columns of the result is certain nevertheless."""
    columns = [c for c in (column_changes(*trees) if trees else ()) if c.what != "changed"]
    found = list(column_findings(columns))
    if names:
        doubt = "Spark has to prove that it is still the same query"
        return [Finding(kind="rows", message=names), Finding(kind="rows", message=doubt)]
    if clauses := changed_clauses(old, new, known=frozenset(name.lower() for c in columns for name in (c.name, c.new))):
        message = ", ".join(clauses)
    else:
        message = "the new columns affect its rows" if any(f.kind == "columns-added" for f in found) else "the query as a whole"
    return [*found, Finding(kind="rows", message=message)]


def _most_important_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda f: -CLASSES.index(f.kind)))
