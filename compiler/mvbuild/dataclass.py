"""annotated class -> dataclass; the methods of a frozen one are compiled when they are called for the first time.

The standard decorator writes six methods of a frozen class as text and compiles them, which takes most of a millisecond. A command imports
hundreds of such classes, makes objects of a third of them, and compares few: that was a third of the time of `ls` and `status`. The fields,
the slots and the methods are those of the standard library.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, order=False, **options):
        """The decorator of the standard library, with the same parameters."""

        def made(found):
            if not frozen or order:
                return dataclasses.dataclass(found, frozen=frozen, eq=eq, order=order, **options)
            own = set(vars(found))
            return _frozen(dataclasses.dataclass(found, init=False, repr=False, eq=False, **options), own, eq=eq)

        return made if cls is None else made(cls)


def _frozen(cls: Any, own: set[str], *, eq: bool) -> Any:
    """`own`: what the class itself defines, and keeps."""
    names = [name for name in ("__init__", "__repr__", *(("__eq__", "__hash__") if eq else ())) if name not in own]

    for name in names:
        setattr(cls, name, _later(cls, name, eq=eq))
    cls.__setattr__, cls.__delattr__ = _refuse_to_set, _refuse_to_delete
    cls.__getstate__, cls.__setstate__ = _state, _set_state
    return cls


def _later(cls: Any, name: str, *, eq: bool) -> Any:
    """A method that replaces itself when it is called for the first time."""

    def first(*given: Any, **named: Any) -> Any:
        fields = [(field.name, field.type, field) for field in dataclasses.fields(cls)]
        after = {"__post_init__": cls.__post_init__} if hasattr(cls, "__post_init__") else {}
        wanted: Any = {"init": name == "__init__", "repr": name == "__repr__", "eq": eq and name in ("__eq__", "__hash__")}
        method = vars(dataclasses.make_dataclass(cls.__name__, fields, frozen=True, namespace=after, **wanted))[name]
        setattr(cls, name, method)
        return method(*given, **named)

    return first


def _refuse_to_set(self: object, name: str, value: object) -> None:  # noqa: ARG001
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:  # noqa: ARG001
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
