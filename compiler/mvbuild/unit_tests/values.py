"""rows of YAML + the types of columns -> a query that returns them, and what is wrong with a value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from mvbuild.diagnostics import Diagnostic, did_you_mean, error
from mvbuild.names import quote
from mvbuild.parse.wall_clock import is_time
from mvbuild.project.unit_tests import RowsAsWritten

Types = Mapping[str, "str | None"]
"""Column -> Spark's type; None if it is not known."""
_WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_NESTED = ("struct<", "array<", "map<")


def rows_sql(rows: RowsAsWritten, types: Types) -> str:
    """A subquery in parentheses with all columns of `types`, and those of the rows. What is not given is NULL."""
    if rows.sql is not None:
        return f"({rows.sql}\n)"
    known = {name.lower(): name for name in types}
    names = list(dict.fromkeys((*types, *(known.get(name.lower(), name) for name in rows.columns))))
    of_row = [{known.get(str(name).lower(), str(name)): value for name, value in record.items()} for record in rows.records]
    lines = [", ".join(literal(record.get(name), types.get(name)) for name in names) for record in of_row]
    columns = ", ".join(map(quote, names))
    if lines:
        return f"(SELECT * FROM VALUES {', '.join(f'({line})' for line in lines)} AS given({columns}))"
    nothing = ", ".join(f"{literal(None, types.get(name))} AS {quote(name)}" for name in names) or "1"
    return f"(SELECT {nothing} WHERE false)"


def problems(rows: RowsAsWritten, types: Types, *, complete: bool, what: str) -> list[Diagnostic]:
    """Unknown columns, and values that a column of that type cannot have."""
    known = {name.lower(): name for name in types}
    unknown = [name for name in rows.columns if complete and name.lower() not in known]
    found = [error("bad-unit-test", f"{what} has no column '{name}'", rows.span, help=did_you_mean(name, types)) for name in unknown]
    for number, record in enumerate(rows.records):
        for name, value in record.items():
            type_ = types.get(known.get(str(name).lower(), ""))
            if type_ and not fits(value, type_):
                message = f"{_shown(value)} in column '{name}' is not exactly a value of type {type_}"
                found.append(error("bad-unit-test", message, rows.places[number]))
    return found


def literal(value: Any, type_: str | None) -> str:
    """A value as an expression of SQL, of exactly that type.

    >>> literal(None, "int"), literal("a'b", "string"), literal(3, "decimal(4,1)")
    ('CAST(NULL AS int)', "CAST('a\\\\'b' AS string)", 'CAST(3 AS decimal(4,1))')
    """
    if value is not None and type_ and type_.startswith(_NESTED):
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        return f"from_json({_text(text)}, {_text(type_)})"
    plain = _plain(value)
    return f"CAST({plain} AS {type_})" if type_ else plain


def _plain(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"TIMESTAMP {_text(str(value))}"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, float):
        return f"{value!r}D" if value == value and abs(value) != float("inf") else f"DOUBLE('{value}')"
    return str(value) if isinstance(value, int) else _text(str(value))


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def fits(value: Any, type_: str) -> bool:
    """Whether a cast keeps the value exactly.

    >>> fits(1.5, "int"), fits("7", "bigint"), fits("1.50", "decimal(10,2)"), fits("1.505", "decimal(10,2)"), fits("soon", "date")
    (False, True, True, False, False)
    """
    if value is None or type_ in ("string", "binary") or type_.startswith(_NESTED):
        return not isinstance(value, (dict, list)) or type_.startswith(_NESTED)
    if isinstance(value, (dict, list)):
        return False
    if type_ == "boolean":
        return isinstance(value, bool) or str(value).lower() in ("true", "false")
    if type_ == "date":
        return _is_date(value)
    if type_.startswith("timestamp"):
        return isinstance(value, date) or is_time(str(value))
    number = None if isinstance(value, (bool, date)) else _number(value)
    if type_ in _WHOLE:
        return number is not None and number == int(number) and -(2 ** (_WHOLE[type_] - 1)) <= number < 2 ** (_WHOLE[type_] - 1)
    if type_.startswith("decimal("):
        precision, scale = map(int, type_[8:-1].split(","))
        return number is not None and number == round(number, scale) and abs(number) < 10 ** (precision - scale)
    if type_ in ("double", "float"):
        return number is not None or str(value).lower().lstrip("+-") in ("nan", "inf", "infinity")
    return True


def _number(value: Any) -> Decimal | None:
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _is_date(value: Any) -> bool:
    if isinstance(value, date):
        return not isinstance(value, datetime) or value.time() == datetime.min.time()
    try:
        date.fromisoformat(str(value).strip())
    except ValueError:
        return False
    return True


def _shown(value: Any) -> str:
    text = str(value)
    return f"'{text if len(text) <= 60 else text[:57] + '...'}'"


def compared(columns: Sequence[tuple[str, str]]) -> str:
    """The columns, with their types, as texts that are equal exactly if the values are."""
    return ", ".join(_as_text(quote(name), type_) for name, type_ in columns)


def _as_text(column: str, type_: str) -> str:
    if type_ == "binary":
        return f"hex({column})"
    if type_.startswith(_NESTED):
        return f"to_json(named_struct('v', {column}), map('ignoreNullFields', 'false'))"
    if type_ in ("double", "float"):
        return f"CAST({column} + 0 AS string)"  # no negative zero
    return f"CAST({column} AS string)"
