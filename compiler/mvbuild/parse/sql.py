"""rendered SQL -> Query: one SELECT statement and every table that it reads, each with its place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, TokenError

from mvbuild.diagnostics import Diagnostic, did_you_mean, error
from mvbuild.parse import placeholder
from mvbuild.parse.dialect import parse, tokenize
from mvbuild.parse.extent import MOST_TABLES, MOST_WORDS, has_many_words, is_too_deep
from mvbuild.parse.model import Query
from mvbuild.parse.output import names_read, output_columns
from mvbuild.parse.respelling import NAMES, parenthesized, respelled, trees_of
from mvbuild.parse.splice import Edit, cut, edited
from mvbuild.parse.sql_slips import missing_between, trailing_commas
from mvbuild.parse.tables import find_reads
from mvbuild.parse.template_output import written_by_template
from mvbuild.project.setting import EMPTY
from mvbuild.source import MappedText, Span

_STARTS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")
_COMMANDS = (
    "ADD ALTER ANALYZE BEGIN CACHE CALL CLEAR COMMENT COMMIT CREATE DECLARE DELETE DESC DESCRIBE DFS DROP EXECUTE EXPLAIN EXPORT GRANT "
    "IMPORT INSERT KILL LIST LOAD LOCK MERGE MSCK PRAGMA REFRESH REPAIR REPLACE RESET REVOKE ROLLBACK SET SHOW START TRUNCATE UNCACHE "
    "UNLOCK UNSET UPDATE USE"
)
_CLAUSES = frozenset("SELECT FROM WHERE GROUP HAVING ORDER JOIN LEFT INNER ON UNION WITH AS AND OR CASE WHEN THEN ELSE END".split())
_STATEMENTS = frozenset(_COMMANDS.split())
_BLANKS = "\t\n\r"
_PLAIN = re.compile(r"[\t\n\r -~]*")
_CODED = re.compile(placeholder.PREFIX)
_QUOTE = re.compile(r"['\"]")
_NESTING = "Break the query up with WITH clauses."
_OPENING = re.compile(r"--(?:\\\n|[^\n])*|/\*|'|\"|`|[rR]'|[rR]\"")


_SLIPS = (IndexError, KeyError, ValueError, TypeError, AttributeError, AssertionError)
"""Further exceptions of sqlglot, for calls without the arguments that it expects."""


def parse_query(sql: MappedText, own: Mapping[str, str] = EMPTY) -> tuple[Query | None, tuple[Diagnostic, ...]]:
    """The query, or None and what is wrong with it. If there are diagnostics beside a query, its reads are not complete.

    `own`: the model's name -> its text within strings.
    """
    if has_many_words(sql.text):
        return None, (_too_large(sql, f"The query has more than {MOST_WORDS:,} tokens"),)
    try:
        tokens = tokenize(sql.text)
    except TokenError:
        return None, (_unclosed(sql),)
    if _QUOTE.search(sql.text) and any(token.token_type == TokenType.STRING and placeholder.PREFIX in token.text for token in tokens):
        sql = _named_in_strings(sql, tokens, own)
        tokens = tokenize(sql.text)
    statements = list(_statements(tokens)) if ";" in sql.text else [tokens] if tokens else []
    problems = (*_invisible(tokens, sql), *_shape(statements, sql), *_continued_comments(tokens, sql))
    if problems:
        return None, problems
    first, last = statements[0][0].start, statements[0][-1].end + 1
    text = cut(sql, first, last)
    return _query(text, statements[0] if first == 0 else tokenize(text.text))


def _query(text: MappedText, tokens: Sequence[Token]) -> tuple[Query | None, tuple[Diagnostic, ...]]:
    try:
        trees = parse(respelled(tokens, text.text), text.text)
    except ParseError as exc:
        return None, (_syntax(exc, tokens, text),)
    except RecursionError:
        return None, (_too_deep(text, tokens),)
    except _SLIPS:
        return None, (_ill_formed(text, tokens),)
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, (exp.Query, exp.Values)):
        return None, (_not_a_query(text, tokens),)
    commas = tuple(trailing_commas(tokens, text))
    if commas:
        return None, commas
    if len(tokens) > MOST_TABLES and sum(1 for _ in tree.find_all(exp.Table)) > MOST_TABLES:
        return None, (_too_large(text, f"The query reads more than {MOST_TABLES:,} tables"),)
    nodes = list(tree.walk(prune=_is_hint if "/*+" in text.text else None))
    reads, problems = find_reads(nodes, tokens, text)
    covered = {offset for read in reads for offset in (read.start, *(start for start, _ in read.qualifiers))}
    problems = (*problems, *_misplaced(tokens, covered, text))
    columns, names = output_columns(tree), names_read(nodes)
    for node in nodes:
        # A tree whose nodes refer to their parents would stay in memory until the next garbage collection.
        node.parent = None
    return Query(sql=text, reads=reads, columns=columns, names=names), problems


def _is_hint(node: exp.Expr) -> bool:
    return isinstance(node, exp.Hint)


def tree_of(query: Query) -> exp.Expr:
    """Parse a query again, with names and literals at their offsets in its text."""
    (tree,) = trees_of(query.sql.text)
    assert tree is not None, "it was parsed before"
    return tree


# Before parsing


def _statements(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    statement: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement:
        yield statement


def _shape(statements: Sequence[Sequence[Token]], sql: MappedText) -> Iterator[Diagnostic]:
    """What is known about a file before its SQL is parsed."""
    if not statements:
        yield error("empty-sql", "There is no SQL here", sql.span(0, len(sql.text.rstrip()) or 1))
        return
    if len(statements) > 1:
        yield error("many-statements", "A second statement begins here", _span(sql, statements[1][0]))
        return
    first = statements[0][0]
    if is_too_deep(statements[0]):
        yield _too_deep(sql, statements[0])
    elif first.text.upper() in _STATEMENTS:
        yield _not_a_query(sql, statements[0])
    elif first.text.upper() not in (*_STARTS, "MAP", "REDUCE"):
        near = did_you_mean(first.text.upper(), _STARTS[:-1])
        help = near if near.startswith("Did") else ""
        yield error("sql-syntax", f"A query cannot begin with '{_shown(first)}'", _span(sql, first), help=help)


def _invisible(tokens: Sequence[Token], sql: MappedText) -> Iterator[Diagnostic]:
    """Invisible characters outside strings and quoted names, which would make the next error hard to understand."""
    if _PLAIN.fullmatch(sql.text):
        return
    for token in tokens:
        text = "" if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) else sql.text[token.start : token.end + 1]
        for offset, char in enumerate(text, token.start):
            # `group by` is one token, whatever is between the words.
            if unicodedata.category(char) in ("Cc", "Cf") and char not in _BLANKS:
                message = f"Invisible character U+{ord(char):04X}"
                yield error("sql-syntax", message, sql.span(offset, offset + 1), help="Remove it.")
                return


def _named_in_strings(sql: MappedText, tokens: Sequence[Token], own: Mapping[str, str]) -> MappedText:
    """A ref() inside a string literal is the plain name there, `this` the full one."""
    edits = []
    for token in tokens:
        if token.token_type != TokenType.STRING:
            continue
        for match in re.finditer(rf"`({placeholder.PREFIX}[^`]*)`", sql.text[token.start : token.end + 1]):
            start, end = token.start + match.start(), token.start + match.end()
            coded = placeholder.decode(match[1])
            if coded:
                name = ".".join(coded[1])
                edits.append(Edit(start=start, end=end, new=own.get(name, name), origin=sql.span(start, end)))
    return edited(sql, edits, spaced=False)


def _continued_comments(tokens: Sequence[Token], sql: MappedText) -> Iterator[Diagnostic]:
    r"""Spark continues a `--` comment that ends in a backslash, sqlglot does not."""
    if "\\\n" not in sql.text:
        return
    at = 0
    for start, end in (*((token.start, token.end + 1) for token in tokens), (len(sql.text), len(sql.text))):
        for match in re.finditer(r"--[^\n]*\\\n", sql.text[at:start]):
            begin = at + match.start()
            yield error(
                "sql-syntax",
                "Spark continues this comment on the next line, because it ends in a backslash",
                sql.span(begin, begin + len(match[0]) - 1),
                help="Remove the backslash.",
            )
        at = max(at, end)


def _unclosed(sql: MappedText) -> Diagnostic:
    """The quote or comment that is never closed."""
    names = {"'": "A string", '"': "A string", "`": "A quoted name", "/*": "A comment"}
    at = 0
    while match := _OPENING.search(sql.text, at):
        opening = match[0] if match[0] in names else match[0][-1]
        at = match.end() if match[0].startswith("--") else _closing(sql.text, match, opening)
        if at < 0:
            message = f"{names[opening]} is never closed"
            return error("sql-syntax", message, sql.span(match.start(), match.end()), help=f"Close it with `{opening[::-1]}`.")
    return error("sql-syntax", "The SQL cannot be read", sql.span(0, len(sql.text)))


def _closing(text: str, opening: re.Match[str], kind: str) -> int:
    """The offset after the end of a quote or comment, -1 without an end."""
    if kind == "/*":
        depth, at = 1, opening.end()
        while depth and (match := re.compile(r"/\*|\*/").search(text, at)):
            depth += 1 if match[0] == "/*" else -1
            at = match.end()
        return -1 if depth else at
    raw = kind == "`" or opening[0][0] in "rR"
    match = re.compile(kind if raw else rf"(?:[^{kind}\\]|\\.)*{kind}", re.DOTALL).search(text, opening.end())
    return match.end() if match and (raw or match.start() == opening.end()) else -1


# What is wrong


def _syntax(exc: ParseError, tokens: Sequence[Token], text: MappedText) -> Diagnostic:
    details = exc.errors[0] if exc.errors else {}
    where = (details.get("line"), details.get("col"))
    token = next((t for t in tokens if (t.line, t.col) == where), tokens[-1])
    comma = next(trailing_commas(tokens, text, near=token), None)
    if comma:
        return comma
    shown = _shown(token)
    message = _explained(str(details.get("description") or ""), shown, token is tokens[-1])
    help = missing_between(tokens, token) or _way_out(token, shown, message)
    return error("sql-syntax", message, _span(text, token), help=help, notes=written_by_template(text, token.start, shown))


def _explained(description: str, shown: str, is_last: bool) -> str:
    """An explanation of sqlglot's message, which may be a dump of a token."""
    incomplete = description.startswith(("Expecting", "Required keyword", "Failed to parse"))
    if is_last and (incomplete or "SENTINEL" in description):
        return f"Unexpected end of the SQL, after '{shown}'"
    if description.startswith("Expected table name"):
        return f"Expected a table name, not '{shown}'"
    if match := re.match(r"Expecting (\S+)$", description):
        return f"Expected '{match[1]}' at '{shown}'"
    if description.startswith("Required keyword"):
        return f"Something is missing at '{shown}'"
    if description.startswith("Failed to parse any statement following CTE"):
        return f"Expected a query after WITH, at '{shown}'"
    return f"Unexpected '{shown}'"


def _way_out(token: Token, shown: str, message: str) -> str:
    if message.startswith("The SQL ends"):
        return "Write the rest of the query."
    if token.token_type not in NAMES and shown.upper() not in _CLAUSES and re.fullmatch(r"[A-Za-z_]\w*", shown):
        return f"If {shown} is a name, quote it with backticks: `{shown}`."
    return ""


def _not_a_query(text: MappedText, tokens: Sequence[Token]) -> Diagnostic:
    kinds = (TokenType.INSERT, TokenType.DELETE, TokenType.UPDATE, TokenType.MERGE)
    first = tokens[0].text.upper()
    name = next((token.text.upper() for token in tokens if first not in _STATEMENTS and token.token_type in kinds), first)
    return error("not-a-query", f"{name} begins a statement, not a query", _span(text, tokens[0]))


def _ill_formed(text: MappedText, tokens: Sequence[Token]) -> Diagnostic:
    """sqlglot assumes that some functions have all their arguments, and fails if one is missing."""
    calls = [at for at in range(1, len(tokens)) if tokens[at].token_type == TokenType.L_PAREN]
    ends = {at: parenthesized(tokens, at) for at in calls}
    guilty = [at for at in calls if _slips(text.text[tokens[at - 1].start : tokens[min(ends[at], len(tokens)) - 1].end + 1])]
    if not guilty:
        return error("sql-syntax", "The SQL cannot be parsed", _span(text, tokens[0]))
    name = tokens[min(guilty, key=lambda at: ends[at] - at) - 1]
    return error(
        "sql-syntax", f"The arguments of '{_shown(name)}' cannot be parsed", _span(text, name), help="Look for a missing argument."
    )


def _slips(call: str) -> bool:
    try:
        parse(tokenize(f"SELECT {call}"), call)
    except _SLIPS:
        return True
    except (ParseError, TokenError, RecursionError):
        return False
    return False


def _too_deep(text: MappedText, tokens: Sequence[Token]) -> Diagnostic:
    return error("sql-syntax", "The SQL is nested too deeply", _span(text, tokens[0]), help=_NESTING)


def _too_large(text: MappedText, message: str) -> Diagnostic:
    return error("file-too-large", message, text.span(0, 1).file.line_span(1), help="Split the query into several models.")


def _misplaced(tokens: Sequence[Token], covered: set[int], text: MappedText) -> Iterator[Diagnostic]:
    """A ref() or source() that is neither a table nor the qualifier of a column."""
    if all(found.start() - 1 in covered for found in _CODED.finditer(text.text)):
        return
    for token in tokens:
        coded = placeholder.decode(token.text) if token.token_type == TokenType.IDENTIFIER else None
        if coded and token.start not in covered:
            message = f"{coded[0]}() is not allowed here: only a table can be read"
            yield error("sql-syntax", message, _span(text, token), help="Use it after FROM or JOIN, or before a column: {{ ref('x') }}.id")


def _shown(token: Token) -> str:
    text = placeholder.shown(token.text)
    return text if len(text) <= 40 or text != token.text else text[:37] + "..."


def _span(text: MappedText, token: Token) -> Span:
    return text.span(token.start, token.end + 1)
