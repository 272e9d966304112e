"""Macros of a project or package -> `adapter` in its templates: `dispatch`, which finds the macro for Spark, otherwise the default one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import UndefinedError

from mvbuild.parse.libraries import PREFIXES, Library
from mvbuild.parse.package_macros import PackageMacros


class Adapter:
    """`adapter` in a template."""

    __slots__ = ("_libraries", "_names", "_packages", "_project")

    def __init__(self, names: Mapping[str, Any], libraries: Mapping[str, Library], packages: Mapping[str, PackageMacros]) -> None:
        """`names` are those of the templates that use it."""
        self._names = names
        self._packages = packages
        self._libraries = libraries

    def dispatch(self, macro_name: str, macro_namespace: str | None = None) -> Any:
        """This project's macro `spark__<name>` or `default__<name>`, otherwise that of the library or the package. As in dbt, a namespace
        that is not a package means this project. Raises UndefinedError if there is none."""
        library = self._libraries.get(macro_namespace or "dbt")
        if library is not None and (found := library.find(macro_name)) is not None:
            return found
        package = self._packages.get(macro_namespace or "")
        for prefix in PREFIXES if library is None or macro_namespace is None else ():
            if (found := self._names.get(f"{prefix}{macro_name}")) is not None:
                return found
        for prefix in PREFIXES if package is not None else ():
            if package is not None and (found := package.find(f"{prefix}{macro_name}")) is not None:
                return found
        raise UndefinedError(f"'{PREFIXES[-1]}{macro_name}' is undefined")

    def quote(self, identifier: object) -> str:
        return f"`{identifier}`"

    def type(self) -> str:
        """dbt's name of the adapter, as `target.type`."""
        return "spark"


class Column:
    """`api.Column` in a template."""

    __slots__ = ()

    def translate_type(self, dtype: object) -> str:
        """Spark's name of a type; dbt-spark has no other names for it."""
        return str(dtype)


class Api:
    """`api` in a template."""

    __slots__ = ("Column",)

    def __init__(self) -> None:
        self.Column = Column()
