"""WITH clauses -> the common table expressions that are never used, and the text without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import TokenType, exp

from mvbuild.graph.model import ModelNode
from mvbuild.lint.facts import Facts
from mvbuild.lint.model import Edit, Fix, Found, Options, Rule
from mvbuild.lint.statement import Statement, cte_of
from mvbuild.source import Span


def check(facts: Facts, node: ModelNode, options: Options) -> Iterator[Found]:  # noqa: ARG001
    statement = facts.statement(node)
    if statement.is_piped or not statement.tree.find(exp.With):
        return
    used = _reached(statement.tree)
    for clause in statement.tree.find_all(exp.With):
        unused = [cte for cte in clause.expressions if id(cte) not in used]
        # Those inside a removed one are removed with it.
        if not unused or any(id(outer) not in used for outer in _around(clause)):
            continue
        unused = [cte for cte in unused if not statement.is_named_elsewhere(cte.alias)]
        fix = _fix(statement, clause, unused) if unused else None
        for cte in unused:
            name = cte.args["alias"].this
            if "start" in name.meta:
                yield Found(message=f"Nothing reads '{cte.alias}'", span=statement.span_of(name), fix=fix)


def _reached(tree: exp.Expr) -> set[int]:
    """The ids of the expressions that the query reads, directly or through others."""
    reads: dict[int | None, list[exp.CTE]] = {}
    for table in tree.find_all(exp.Table):
        cte = cte_of(table)
        if cte is not None:
            inside = [id(outer) for outer in _around(table)]
            # A recursive expression is not used by reading itself.
            if id(cte) not in inside:
                reads.setdefault(inside[0] if inside else None, []).append(cte)
    found: set[int] = set()
    waiting = list(reads.get(None, ()))
    while waiting:
        cte = waiting.pop()
        if id(cte) not in found:
            found.add(id(cte))
            waiting += reads.get(id(cte), ())
    return found


def _around(node: exp.Expr) -> list[exp.CTE]:
    """The expressions whose query contains a node, from the inside out."""
    found = []
    parent = node.parent
    while parent is not None:
        if isinstance(parent, exp.CTE):
            found.append(parent)
        parent = parent.parent
    return found


# The fix


def _fix(statement: Statement, clause: exp.With, unused: Sequence[exp.CTE]) -> Fix | None:
    """All of one WITH at once, because its commas have to fit."""
    bounds = [_bounds(statement, cte) for cte in clause.expressions]
    keys = {cte.args["alias"].this.meta.get("start") for cte in unused}
    if any(b is None for b in bounds) or None in keys:
        return None
    known = [b for b in bounds if b is not None]
    if len(unused) == len(known):
        pieces = [_whole_clause(statement, known)]
    else:
        goes = [id(cte) in map(id, unused) for cte in clause.expressions]
        pieces = [piece for at, gone in enumerate(goes) if gone for piece in _pieces(statement, known, at, is_last=all(goes[at:]))]
    spans = [statement.in_file(start, end) for start, end in pieces]
    found = [span for span in spans if isinstance(span, Span)]
    if len(found) < len(spans):
        return None
    return Fix(edits=tuple(Edit(span, "") for span in found), rewrite=lambda tree: _remove(tree, keys))


def _bounds(statement: Statement, cte: exp.CTE) -> tuple[int, int] | None:
    """[start, end) of `name (columns) AS (query)`."""
    start = cte.args["alias"].this.meta.get("start")
    if not isinstance(start, int):
        return None
    depth, is_query = 0, False
    for token in statement.tokens[statement.index_at(start) + 1 :]:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        is_query = is_query or (depth == 0 and token.token_type == TokenType.ALIAS)
        if is_query and depth == 0 and token.token_type == TokenType.R_PAREN:
            return start, token.end + 1
    return None


def _whole_clause(statement: Statement, bounds: Sequence[tuple[int, int]]) -> tuple[int, int]:
    opening = statement.word_before(bounds[0][0], TokenType.WITH)
    return opening.start if opening else bounds[0][0], _skipped(statement, bounds[-1][1])


def _pieces(statement: Statement, bounds: Sequence[tuple[int, int]], at: int, *, is_last: bool) -> Iterator[tuple[int, int]]:
    """What is removed for one expression. A comment before the next one remains. `is_last`: no remaining expression follows."""
    start, end = bounds[at]
    if not is_last:
        comma = statement.tokens[statement.index_at(end)]
        yield start, _skipped(statement, comma.end + 1)
        return
    # The comma before it follows the last remaining expression; those in between are removed with the expression that they follow, or with
    # this one.
    comma_before = statement.word_before(start, TokenType.COMMA)
    if comma_before is None:
        yield start, end
    elif statement.text.text[comma_before.end + 1 : start].strip():
        yield comma_before.start, comma_before.end + 1
        yield start, end
    else:
        yield comma_before.start, end


def _skipped(statement: Statement, offset: int) -> int:
    """The offset of the next text, including comments."""
    text = statement.text.text
    return offset + len(text[offset:]) - len(text[offset:].lstrip())


def _remove(tree: exp.Expr, keys: set[int | None]) -> None:
    for clause in list(tree.find_all(exp.With)):
        kept = [cte for cte in clause.expressions if cte.args["alias"].this.meta.get("start") not in keys]
        if len(kept) == len(clause.expressions):
            continue
        if kept:
            clause.set("expressions", kept)
        elif clause.parent is not None:
            clause.parent.set("with_", None)


RULE = Rule(
    code="unused-cte",
    level="warning",
    title="An unused common table expression.",
    why="What it reads still counts as an input of the model, so a change there makes the MV stale for nothing.",
    help="Remove it.",
    check=check,
    fix="Removes it.",
    wrong={"models/names.sql": "WITH old AS (SELECT id FROM {{ ref('customers') }})\nSELECT name FROM {{ ref('customers') }}\n"},
    right={"models/names.sql": "WITH c AS (SELECT name FROM {{ ref('customers') }})\nSELECT name FROM c\n"},
)
