"""settings -> the `conf` of a session in this process, as PySpark has it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace


class ScalaMap(dict[str, str]):
    def mkString(self, separator: str) -> str:  # noqa: N802
        return separator.join(f"{key} -> {value}" for key, value in self.items())


def conf_with(settings: Mapping[str, str]) -> SimpleNamespace:
    return SimpleNamespace(_jconf=SimpleNamespace(getAll=lambda: ScalaMap(settings)))
