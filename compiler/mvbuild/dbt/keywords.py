"""SQL of a dbt model -> the columns in it that are named like keywords: Spark accepts them, and mvbuild's parser does not."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|\{\#.*?\#\}|\{%.*?%\}|\{\{.*?\}\}"""
    r"""|(?<=\()\s*(?P<values>values)\s*(?=\))"""
    r"""|\b(?P<from>from)\b(?=\s*(?:[,)]|[=<>]|!=))""",
    re.IGNORECASE | re.DOTALL,
)


def keyword_columns(sql: str) -> Iterator[tuple[int, int]]:
    """The places of `values` as the only argument of a function, and of `from` before a comma, a parenthesis or a comparison:
    neither can be the keyword there."""
    for token in _TOKEN.finditer(sql):
        for name in ("values", "from"):
            if token[name]:
                yield token.span(name)
