"""A query of an incremental model and a batch -> the same query of generated tables at the time of the batch, in Spark's SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType

from mvbuild.dbt.rendering import ANY_VALUE
from unit.dbt.batch_columns import is_qualified, own_name, table_name

_Edit = tuple[int, int, str]
"""From where to where in a text, and what comes instead."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def parsed(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, read="spark")


def played(sql: str, model: str, now: datetime, days: Mapping[str, timedelta]) -> str:
    """`days`: a day in the text that a variable of the run gives -> how far it is from the day of the run."""
    for start, end, text in sorted({*_tables(parsed(sql), model), *_times(sql, now, days)}, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql.rstrip().rstrip(";")


def run_days(values: Mapping[str, str]) -> Mapping[str, timedelta]:
    """The days that were given for variables of the run -> how far each is from the first one, which is the day of the run."""
    found = {value: date.fromisoformat(value) for value in values.values() if _DAY.fullmatch(value)}
    return {value: day - min(found.values()) for value, day in found.items()}


def last_day(sql: str) -> date | None:
    """The last day that a query names: a bound of what it returns."""
    literals = parsed(sql).find_all(exp.Literal)
    days = [text.name[:10] for text in literals if text.is_string and _DAY.match(text.name) and text.name < "2100"]
    return date.fromisoformat(max(days)) if days else None


def _tables(tree: exp.Expr, model: str) -> Iterator[_Edit]:
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = [t for t in tree.find_all(exp.Table) if isinstance(t.this, exp.Identifier) and (t.db or t.name.lower() not in ctes)]
    for table in tables:
        start, end = table.parts[0].meta["start"], table.parts[-1].meta["end"] + 1
        yield start, end, f"`{table_name(table, model)}`" + ("" if table.alias else f" AS `{own_name(table)}`")
    for column in tree.find_all(exp.Column):
        if is_qualified(column, tables):
            yield column.parts[0].meta["start"], column.parts[1].meta["start"], ""


def _times(sql: str, now: datetime, days: Mapping[str, timedelta]) -> Iterator[_Edit]:
    moments = {
        TokenType.CURRENT_DATE: f"date'{now.date()}'",
        TokenType.CURRENT_TIMESTAMP: f"timestamp'{now}'",
    }
    tokens = Spark().tokenize(sql)
    for at, token in enumerate(tokens):
        called = [t.token_type for t in tokens[at + 1 : at + 3]] == [TokenType.L_PAREN, TokenType.R_PAREN]
        is_now = called and token.text.lower() == "now"
        if token.token_type in moments or is_now:
            end = (tokens[at + 2] if called else token).end + 1
            yield token.start, end, moments[TokenType.CURRENT_TIMESTAMP if is_now else token.token_type]
        elif token.token_type is TokenType.STRING and token.text == ANY_VALUE:
            yield token.start, token.end + 1, "'2000-01-01'"
        elif token.token_type is TokenType.STRING and token.text in days:
            yield token.start, token.end + 1, f"'{now.date() + days[token.text]}'"
