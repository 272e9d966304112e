"""a hook of dbt -> the statements that it runs, if none of them can change a row: then it is left out, and the table is the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_TAG = re.compile(r"\{%.*?%\}", re.DOTALL)
_VALUE = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_CALL = re.compile(r"(?:(?P<package>\w+)\s*\.\s*)?(?P<name>\w+)\s*\(.*\)", re.DOTALL)
_TOKEN = re.compile(r"--[^\n]*|'[^']*'|\"[^\"]*\"|.", re.DOTALL)
_NAME = r"(?:`[^`]+`|[\w.]+)"
_TEXT = r"(?:'[^']*'|\"[^\"]*\")"
_PROPERTIES = rf"\(\s*{_TEXT}\s*(?:=\s*{_TEXT}\s*)?(?:,\s*{_TEXT}\s*(?:=\s*{_TEXT}\s*)?)*\)"
_HARMLESS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"OPTIMIZE\s+{_NAME}(?:\s+ZORDER\s+BY\s+\(?[\w\s,.`]+\)?)?",
        rf"VACUUM\s+{_NAME}(?:\s+RETAIN\s+\d+\s+HOURS)?",
        rf"ANALYZE\s+TABLE\s+{_NAME}\s+COMPUTE\s+(?:DELTA\s+)?STATISTICS(?:\s+FOR\s+(?:ALL\s+COLUMNS|COLUMNS\s+[\w\s,`]+)|\s+NOSCAN)?",
        rf"ALTER\s+\w+\s+{_NAME}\s+(?:SET|UNSET)\s+TBLPROPERTIES\s*{_PROPERTIES}",
        rf"(?:GRANT|REVOKE)\s+[\w\s,]+\s+ON\s+(?:\w+\s+)?{_NAME}\s+(?:TO|FROM)\s+{_NAME}",
        rf"COMMENT\s+ON\s+\w+\s+{_NAME}\s+IS\s+{_TEXT}",
        rf"REFRESH\s+(?:TABLE\s+)?{_NAME}",
    )
)
_DEEPEST = 5


def statements(value: Any, macros: Mapping[str, str], project: str) -> list[str] | None:
    """The statements of a hook with `_` in place of the values in it, whatever its conditions are; None if one of them may change a row,
    or if that is not known. `macros`: name -> the text between its tags."""
    texts = value if isinstance(value, list) else [value]
    found: list[str] = []
    for item in texts:
        text = item.get("sql") if isinstance(item, Mapping) else item
        if not isinstance(text, str):
            return None
        expanded = _expanded(text, macros, project, _DEEPEST)
        if expanded is None:
            return None
        found += _split(expanded)
    return found if all(any(pattern.fullmatch(one) for pattern in _HARMLESS) for one in found) else None


def macro_texts(files: Iterator[str]) -> dict[str, str]:
    """Macro -> what is between its tags."""
    found: dict[str, str] = {}
    for text in files:
        for macro in re.finditer(
            r"\{%-?\s*macro\s+(\w+)\s*\(.*?\)\s*-?%\}(.*?)\{%-?\s*endmacro\s*-?%\}", _COMMENT.sub("", text), re.DOTALL
        ):
            found.setdefault(macro[1], macro[2])
    return found


def _expanded(text: str, macros: Mapping[str, str], project: str, depth: int) -> str | None:
    """The SQL of all branches of a template, with the macros that it calls. A call that is not known, or of which a statement could come,
    ends in None."""
    if depth == 0:
        return None
    parts: list[str] = []
    at = 0
    text = _COMMENT.sub("", text)
    if re.search(r"\{%-?\s*(?:do|call|import|include)\b|run_query|statement", text):
        return None
    text = _TAG.sub(";", text) if _is_statement_level(text) else _TAG.sub(" ", text)
    for value in _VALUE.finditer(text):
        parts.append(text[at : value.start()])
        call = _CALL.fullmatch(value[1])
        body = macros.get(call["name"]) if call and call["package"] in (None, project) else None
        if body is not None:
            inner = _expanded(body, macros, project, depth - 1)
            if inner is None:
                return None
            parts.append(inner)
        elif call and (call["package"] or call["name"] not in ("var", "env_var", "ref", "source")):
            return None
        else:
            parts.append("_")
        at = value.end()
    return "".join((*parts, text[at:]))


def _is_statement_level(text: str) -> bool:
    """Whether no tag is within parentheses: then each tag is between statements."""
    depth = 0
    for piece in re.finditer(r"\{%.*?%\}|\{\{.*?\}\}|[()]", text, re.DOTALL):
        if piece[0] == "(":
            depth += 1
        elif piece[0] == ")":
            depth -= 1
        elif piece[0].startswith("{%") and depth:
            return False
    return True


def _split(sql: str) -> list[str]:
    """The statements, without comments."""
    parts = [""]
    for token in _TOKEN.finditer(sql):
        if token[0] == ";":
            parts.append("")
        elif not token[0].startswith("--"):
            parts[-1] += token[0]
    return [part.strip() for part in parts if part.strip()]
