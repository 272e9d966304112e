"""annotated class -> dataclass; the methods of a frozen one are compiled when they are called for the first time.

The standard decorator writes six methods of a frozen class as text and compiles them, which takes most of a millisecond. A command imports
hundreds of such classes, makes objects of a third of them, and compares few: that was a third of the time of `ls` and `status`. The fields,
the slots and the methods are those of the standard library.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]
_METHODS = ("__init__", "__repr__", "__eq__", "__hash__", "__getstate__", "__setstate__")

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, order=False, **options):
        """The decorator of the standard library, with the same parameters."""

        def made(found):
            if frozen and not order:
                return _frozen(found, eq=eq, **options)
            if not frozen and any(vars(base).get("__setattr__") is _refuse_to_set for base in found.__mro__):
                raise TypeError("cannot inherit non-frozen dataclass from a frozen one")
            return dataclasses.dataclass(found, frozen=frozen, eq=eq, order=order, **options)

        return made if cls is None else made(cls)


def _frozen(cls: Any, *, eq: bool, **options: Any) -> Any:
    own = {name for name in _METHODS if name in vars(cls)}
    if "__eq__" in own and vars(cls).get("__hash__") is None:
        own.discard("__hash__")  # Python sets it to None beside an `__eq__`
    document = cls.__doc__
    cls.__doc__ = document or cls.__name__  # otherwise the standard decorator takes as long to write one
    cls = dataclasses.dataclass(cls, init=False, repr=False, eq=False, **options)
    cls.__doc__ = document
    for field in vars(cls)["__dataclass_fields__"].values():
        if "InitVar" in str(field.type) or not (field.init or field.default is dataclasses.MISSING):
            raise TypeError(
                f"{cls.__name__}.{field.name}: a frozen class has no InitVar, and no default for a field that is not a parameter"
            )
    methods: dict[str, Any] = {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    compiled = ("__init__", "__repr__", *(("__eq__", "__hash__") if eq else ()))
    methods |= {name: _later(cls, name, eq=eq) for name in compiled}
    if options.get("slots"):
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name in methods.keys() - own:
        setattr(cls, name, methods[name])
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
