"""SQL of a dbt model -> the columns in it that are named like keywords: Spark accepts them, and mvbuild's parser does not."""

from __future__ import annotations

import re
from collections.abc import Iterator

_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_TOKEN = re.compile(
    # A string in a tag may have a tag in it: {{ config(post_hook='{{ hook() }}') }}.
    rf"""{_STRING}|`[^`]*`|--[^\n]*|/\*.*?\*/|\{{\#.*?\#\}}|\{{%(?:{_STRING}|[^'"])*?%\}}|\{{\{{(?:{_STRING}|[^'"])*?\}}\}}"""
    r"""|(?<=\()\s*(?P<values>values)\s*(?=\))"""
    r"""|\b(?P<from>from)\b(?=\s*(?:[,)]|[=<>]|!=|as\b))""",
    re.IGNORECASE | re.DOTALL,
)


def keyword_columns(sql: str) -> Iterator[tuple[int, int]]:
    """The places of `values` as the only argument of a function, and of `from` before a comma, a parenthesis, a comparison or `as`:
    neither can be the keyword there."""
    for token in _TOKEN.finditer(sql):
        for name in ("values", "from"):
            if token[name]:
                yield token.span(name)
