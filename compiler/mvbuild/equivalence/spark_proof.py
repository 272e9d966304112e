"""two pinned queries + engine -> what is missing from a proof that they are one query with other names, so that both have the same data.

Sound, not complete; two checks must agree. The texts must be equal word by word except for inner names: that compares literals, which plans
print without their types and quotes. Spark's plans must be equal except for ids and inner names: that compares what each name means.
"""

from __future__ import annotations

import re

from sqlglot import TokenType
from sqlglot.errors import TokenError

from mvbuild.equivalence.canonical_text import same_but_names
from mvbuild.equivalence.plan_text import with_plain_names, without_renames
from mvbuild.parse.determinism import nondeterministic_word
from mvbuild.parse.dialect import tokenize
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.ports.engine import Engine, QueryError

_SECTION = re.compile(r"^== (.+) ==$", re.MULTILINE)
_LEAF = re.compile(r"(RelationV2|BatchScan [^\[\]\n]*)\[([^\[\]\n]*)\]")
_COLUMN = re.compile(r"\w+#\d+L?\Z")
_NAMED_ID = re.compile(r"(?!(?:subquery|exists|list)#)\b(\w+)#(\d+)")
_IDS = re.compile(r"#(\d+)|\bplan_id=(\d+)")
_MARKS = re.compile(r"ExistenceJoin\(exists#(\d+)\)")
_GENERATE = re.compile(r"(Generate .*, (?:true|false), )(?:\w*, )?(\[)")
"""With or without the alias of a LATERAL VIEW."""
_NODE = re.compile(r"([\s:+\-]*)(?:\*\(\d+\) )?(\w*)")
_LOOPS = re.compile(r"\bUnionLoop\b")
_LOOP_OF_ONE = re.compile(r"UnionLoopRef \d+, \[([^\[\],]*)#\d+L?\], (?:true|false)")
"""A recursion of one column. Plans do not show which columns a recursion has, so that nothing else may be confused with its column."""
_LEAVES = ("RelationV2", "BatchScan", "OneRowRelation", "ReusedExchange", "ReusedSubquery")
"""Plan nodes without children that print everything that they read."""
_HIDING = (
    "LocalRelation",
    "LocalTableScan",
    "LogicalRDD",
    "ExternalRDD",
    "ExistingRDD",
    "InMemoryRelation",
    "InMemoryTableScan",
    "ScriptTransformation",
)
"""Plan nodes that do not print their rows. This includes Iceberg's results from metadata, for example for count(*)."""


def missing_proof(engine: Engine, old_sql: str, new_sql: str, *, has_travel: bool = False) -> str:
    """Why it is not proven that two queries, with every table at a snapshot, return the same rows and columns; empty if it is.

    `has_travel`: the user chose a version, so that a snapshot id is not sufficient. A query that the engine refuses proves nothing;
    EngineError is raised.
    """
    doubt = _doubt(old_sql, new_sql, has_travel)
    if doubt:
        return doubt
    try:
        schema = engine.prepare(old_sql).schema
        if schema != engine.prepare(new_sql).schema:
            return "the columns of the result differ"
        one, other = (engine.explain(with_plain_columns(sql, len(schema["fields"]))) for sql in (old_sql, new_sql))
    except QueryError as exc:
        return f"Spark cannot plan both: {exc}"
    return plan_difference(one, other)


def with_plain_columns(sql: str, count: int) -> str:
    """The query with other column names: a column with the same name inside and in the result has no alias in the plan, others have one."""
    return f"SELECT * FROM ({sql}\n) AS result({', '.join(f'column_{n}' for n in range(count))})"


def _doubt(old_sql: str, new_sql: str, has_travel: bool) -> str:
    """Reasons in the texts alone against equality, or against a proof."""
    if has_travel:
        return "the query reads a version of a table that it chooses itself"
    try:
        tokens = [*tokenize(old_sql), *tokenize(new_sql)]
    except TokenError:
        return "the SQL cannot be parsed"
    word = nondeterministic_word(old_sql, strictly=True) or nondeterministic_word(new_sql, strictly=True)
    if word:
        return f"'{word}' may give another value each time"
    strange = next((t.text for t in tokens if t.token_type == TokenType.IDENTIFIER and not re.fullmatch(r"\w+", t.text)), None)
    if strange is not None:
        return f"the name `{strange}` is ambiguous in a plan"
    if any("#" in t.text or "\n" in t.text for t in tokens if t.token_type != TokenType.HINT):
        return "a string is ambiguous in a plan"
    if fingerprint(old_sql) != fingerprint(new_sql) and not same_but_names(old_sql, new_sql):
        return "more than names and formatting was changed"
    return ""


# Plans


def same_plan(one: str, other: str) -> bool:
    """Whether two texts of EXPLAIN EXTENDED show the same plan completely."""
    return not plan_difference(one, other)


def plan_difference(one: str, other: str, *, physical: bool = True) -> str:
    """Why two texts of EXPLAIN EXTENDED do not prove that the plans are equal; empty if they do. Both the optimized and the physical plan
    count:

    the first does not show the filters that Iceberg answers by partitions, the second does. Without `physical` the first one is enough, and
    columns that are only passed on under another name do not matter.
    """
    plans = [_plans(text, physical=physical) for text in (one, other)]
    if not physical:
        plans = [with_plain_names(plan) for plan in plans]
    for plan in plans:
        doubt = _hidden(plan)
        if doubt:
            return doubt
    plans = [_with_plain_marks(_with_plain_loops(plan)) for plan in plans]
    if not physical:
        plans = [without_renames(plan) for plan in plans]
    return "" if _renumbered(plans[0]) == _renumbered(plans[1]) else "Spark's plans differ"


def _plans(text: str, *, physical: bool) -> str:
    """The optimized plan, and the physical one if it counts; empty if one is missing: Spark prints an error instead of a plan."""
    parts = _SECTION.split(text)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = [sections.get(name, "").strip() for name in ("Optimized Logical Plan", "Physical Plan")[: 1 + physical]]
    return "\n".join(found) if all(found) else ""


def _hidden(plan: str) -> str:
    if not plan or "Exception" in plan:
        return "Spark returns no plan"
    if "..." in plan:
        return "Spark's plan is truncated"
    if any(word in plan for word in _HIDING):
        return "Spark's plan does not show all the rows that it works with"
    nodes = [(len(match[1]), match[2], line) for line in plan.split("\n") if (match := _NODE.match(line))]
    for (depth, name, line), (below, *_) in zip(nodes, [*nodes[1:], (0, "", "")], strict=True):
        is_shown = name in _LEAVES or "OneRowRelation" in line or _LOOP_OF_ONE.search(line)
        if below <= depth and not is_shown:
            return "Spark's plan reads something that it does not show"
    if len(_LOOPS.findall(plan)) > 1:
        return "Spark's plan does not show the columns of recursions"
    if any(not _COLUMN.match(column) for _, columns in _LEAF.findall(plan) for column in columns.split(", ") if columns):
        return "the name of a column is ambiguous in a plan"
    return ""


def _with_plain_loops(plan: str) -> str:
    """The column of a recursion is named after the expression with which it starts, as it was written: DATE '2026-01-01'#53."""
    for name in {match[1] for match in _LOOP_OF_ONE.finditer(plan)}:
        plan = re.sub(rf"(?<!\w){re.escape(name)}#", "recursion#", plan)
    return plan


def _with_plain_marks(plan: str) -> str:
    """The column that an ExistenceJoin adds has the name of a kind of subquery: exists#7."""
    for id_ in _MARKS.findall(plan):
        plan = re.sub(rf"\bexists#{id_}\b", f"mark#{id_}", plan)
    return plan


def _renumbered(plan: str) -> str:
    """Ids in order of appearance, and names of columns only where a table provides them: elsewhere the id identifies the column."""
    kept = [(match.start(2), match.end(2)) for match in _LEAF.finditer(plan)]
    numbers: dict[str, int] = {}

    def renamed(match: re.Match[str]) -> str:
        is_leaf = any(start <= match.start() < end for start, end in kept)
        return f"{match[1] if is_leaf else ''}#{match[2]}"

    def numbered(match: re.Match[str]) -> str:
        key = f"#{match[1]}" if match[1] else f"plan {match[2]}"
        return f"#{numbers.setdefault(key, len(numbers))}"

    return _GENERATE.sub(r"\1\2", _IDS.sub(numbered, _NAMED_ID.sub(renamed, plan)))
