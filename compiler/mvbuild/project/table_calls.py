"""Text of YAML like `ref('orders', v=2)` or `source('raw', 'orders')` -> TableCall."""

from __future__ import annotations

import re
from typing import Literal

from mvbuild.dataclass import dataclass

_CALL = re.compile(
    r"""\s*(?:\{\{\s*)?(ref|source)\(\s*['"]([^'"]+)['"](?:\s*,\s*['"]([^'"]+)['"])?"""
    r"""(?:\s*,\s*(?:v|version)\s*=\s*['"]?([\w.-]+)['"]?)?\s*\)\s*(?:\}\})?\s*"""
)

_PART = r"""(?:`[^`]+`|[^\s`'"(),;.]+)"""
_NAME = re.compile(rf"\s*{_PART}(?:\.{_PART})*\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCall:
    """A call of ref() or source() outside of a template."""

    kind: Literal["ref", "source"]
    names: tuple[str, ...]
    """Of ref(): the model, perhaps with its project before it. Of source(): the source and its table."""
    version: str | None = None

    @property
    def model(self) -> str:
        """The name of what ref() names; a version of a model has it in its name."""
        return self.names[-1] if self.version is None else f"{self.names[-1]}.v{self.version}"


def table_call(text: str) -> TableCall | None:
    """None for other text.

    >>> table_call("ref('orders', v=2)").model
    'orders.v2'
    """
    found = _CALL.fullmatch(text)
    if found is None:
        return None
    names = tuple(name for name in found.groups()[1:3] if name)
    if found[1] == "ref":
        return TableCall(kind="ref", names=names, version=found[4])
    return TableCall(kind="source", names=names) if len(names) == 2 and found[4] is None else None


def names_a_table(text: str) -> bool:
    """Whether it is such a call, or the name of a table.

    >>> names_a_table("ref('orders'"), names_a_table("raw.`my orders`")
    (False, True)
    """
    return table_call(text) is not None or _NAME.fullmatch(text) is not None
