"""A package of the project -> its name in templates: `dbt_expectations.expression_is_true()`. Its files are loaded when one is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mvbuild.parse.libraries import Stop


class Scope(dict[str, Any]):
    """The names in the macro files of a package: its own, then those of the project, as in dbt."""

    def __init__(self, outer: Mapping[str, Any]) -> None:
        super().__init__()
        self._outer = outer

    def __missing__(self, name: str) -> Any:
        return self._outer[name]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._outer

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*super().__iter__(), *self._outer))

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401  (this is `get`)


class PackageMacros:
    """A package in a template."""

    __slots__ = ("_load", "_macros", "_name", "_stop")

    def __init__(self, name: str, load: Callable[[], Mapping[str, Any]], stop: Stop) -> None:
        self._name, self._load, self._stop = name, load, stop
        self._macros: Mapping[str, Any] | None = None

    def macro(self, name: str) -> Any:
        """What a template finds by this name. A macro may begin with `_`. Ends the rendering if there is none."""
        found = self.find(name)
        if found is None:
            message = f"The package '{self._name}' has no macro '{name}'"
            self._stop("undefined-name", message, name, f"Look into its macros: dbt_packages/{self._name}/macros.")
        return found

    def find(self, name: str) -> Any:
        """The macro; None if the package has none of this name."""
        if self._macros is None:
            self._macros = self._load()
        return self._macros.get(name)
