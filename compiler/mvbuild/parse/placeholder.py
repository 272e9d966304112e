"""model or source name -> the identifier that represents it in rendered SQL, and back."""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote, unquote

PREFIX = "__mvbuild_"
_REF = PREFIX + "ref__:"
_SOURCE = PREFIX + "source__:"


def for_ref(name: str) -> str:
    """
    >>> for_ref("daily")
    '`__mvbuild_ref__:daily`'
    """
    return f"`{_REF}{_encode(name)}`"


def for_source(source: str, table: str) -> str:
    """
    >>> for_source("raw", "orders")
    '`__mvbuild_source__:raw.orders`'
    """
    return f"`{_SOURCE}{_encode(source)}.{_encode(table)}`"


def decode(identifier: str) -> tuple[Literal["ref", "source"], tuple[str, ...]] | None:
    """The kind and the names; None for an identifier of the user.

    >>> decode("__mvbuild_source__:raw.orders")
    ('source', ('raw', 'orders'))
    """
    if identifier.startswith(_REF):
        return "ref", (unquote(identifier.removeprefix(_REF)),)
    if identifier.startswith(_SOURCE):
        return "source", tuple(unquote(part) for part in identifier.removeprefix(_SOURCE).split("."))
    return None


def shown(identifier: str) -> str:
    """The name as the user wrote it, for messages.

    >>> shown("__mvbuild_source__:raw.orders"), shown("daily")
    ('raw.orders', 'daily')
    """
    coded = decode(identifier)
    return ".".join(coded[1]) if coded else identifier


def _encode(name: str) -> str:
    return quote(name, safe="").replace(".", "%2E")
