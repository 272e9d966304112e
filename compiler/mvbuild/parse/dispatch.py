"""Macros of a project -> `adapter` in templates, of which mvbuild only has `dispatch`: the macro for Spark, otherwise the default one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import UndefinedError

PREFIXES = ("spark__", "default__")
"""The order in which dbt-spark looks for macros; the first existing one is used."""


class Adapter:
    """`adapter` in a template."""

    __slots__ = ("_names", "_project")

    def __init__(self, names: Mapping[str, Any], project: str) -> None:
        self._names = names
        self._project = project

    def dispatch(self, macro_name: str, macro_namespace: str | None = None) -> Any:
        """The macro `spark__<name>` or `default__<name>` of this project. Raises Jinja's UndefinedError if there is neither."""
        if macro_namespace in (None, self._project):
            for prefix in PREFIXES:
                if (found := self._names.get(f"{prefix}{macro_name}")) is not None:
                    return found
        raise UndefinedError(f"'{PREFIXES[-1]}{macro_name}' is undefined")
