"""Names of a project's templates -> `dbt` and `dbt_utils` in them: macros with the meaning that dbt-spark gives them.

As in dbt, a project can replace one of them by its own macro: by `spark__<name>` everywhere, and by `<name>` for calls without a prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, Protocol

from mvbuild.parse.dbt_macros import DBT, OF_SPARK, Macro
from mvbuild.parse.dbt_utils import DBT_UTILS, EMPTY_KEYS, NULL_KEY, UNKNOWN, surrogate_key

PREFIXES = ("spark__", "default__")
"""The order in which dbt-spark looks for macros; the first existing one is used."""
TEST_PREFIX = "test_"
"""Of the macro of a test."""
Stop = Callable[[str, str, str, str], NoReturn]
"""Ends a rendering with a code, a message, the word that caused it, and what to do."""


class Further(Protocol):
    """An installed package of a library's name, which may have macros that the library does not have."""

    def find(self, name: str) -> Any: ...


class Library:
    """A namespace of macros in a template."""

    __slots__ = ("_macros", "_name", "_names", "_stop", "_unknown", "further")

    def __init__(
        self, name: str, macros: Mapping[str, Macro], names: Mapping[str, Any], stop: Stop, unknown: Mapping[str, str] | None = None
    ) -> None:
        self._name, self._macros, self._names, self._stop, self._unknown = name, macros, names, stop, unknown or {}
        self.further: Further | None = None

    def __getattr__(self, name: str) -> Any:
        found = self.find(name)
        if found is None:
            help = self._unknown.get(name) or f"Write the SQL, or a macro `spark__{name}`, which takes its place."
            message = f"{self._name}.{name}() is not supported" if name in self._unknown else f"mvbuild has no macro '{self._name}.{name}'"
            self._stop("undefined-name", message, name, help)
        return found

    def find(self, name: str) -> Any:
        """The project's macro that replaces it, otherwise the macro; None if there is neither."""
        own = self._names.get(f"spark__{name}")
        if own is None and not (self._name == "dbt" and name in OF_SPARK):
            own = self._names.get(f"default__{name}")
        found = own if own is not None else self._macros.get(name)
        return self.further.find(name) if found is None and self.further is not None and name not in self._unknown else found


def libraries(names: Mapping[str, Any], var: Callable[..., Any], stop: Stop) -> Mapping[str, Library]:
    """By name. `names` are those of the templates, to which the project's macros are added later."""

    def generate_surrogate_key(field_list: Iterable[Any]) -> str:
        return surrogate_key(field_list, "" if var(EMPTY_KEYS, False) else NULL_KEY)

    def surrogate_key_of_old(*field_list: Any) -> str:
        fields = field_list[0] if len(field_list) == 1 and not isinstance(field_list[0], str) else field_list
        return surrogate_key(fields, "")

    keys = {"generate_surrogate_key": generate_surrogate_key, "surrogate_key": surrogate_key_of_old}
    return {
        "dbt": Library("dbt", DBT, names, stop),
        "dbt_utils": Library("dbt_utils", {**DBT_UTILS, **keys}, names, stop, UNKNOWN),
    }


LIBRARIES: Mapping[str, frozenset[str]] = {
    "dbt": frozenset(DBT),
    "dbt_utils": frozenset((*DBT_UTILS, "generate_surrogate_key", "surrogate_key")),
}
"""The names of their macros."""


def has_macro(library: str, name: str) -> bool:
    """Whether `library.name()` can be called."""
    return name in LIBRARIES.get(library, ())
