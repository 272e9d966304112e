"""what is already known of a value + how to read the rest -> the value, whose other fields are read when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Later = Callable[[str], Mapping[str, Any]]
"""A requested field -> that field, and others that were found with it."""
T = TypeVar("T", bound="Lazy")


class Lazy:
    """A mixin for dataclasses with slots: Python calls `__getattr__` for an empty slot once."""

    __slots__ = ()
    _later: Later

    @classmethod
    def of(cls: type[T], later: Later, known: Mapping[str, Any]) -> T:
        made, put = cls.__new__(cls), object.__setattr__
        put(made, "_later", later)
        for name, value in known.items():
            put(made, name, value)
        return made

    def __getattr__(self, field: str) -> Any:
        if field.startswith("_"):
            raise AttributeError(field)
        for name, value in self._later(field).items():
            object.__setattr__(self, name, value)
        return object.__getattribute__(self, field)
