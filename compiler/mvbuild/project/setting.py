"""Setting: one value that the user set, with its place; Layer: the settings of one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.source import Span

EMPTY: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that the user set, as plain Python (str, int, float, bool, None, list, dict), and where.

    `key` is the place of its key, `inner` the settings in a mapping or list; a config() call has neither.
    """

    value: Any
    span: Span
    key: Span | None = None
    inner: Mapping[str | int, Setting] = field(default_factory=lambda: EMPTY)

    def at(self, name: str | int) -> Setting:
        """An item of the value, at its own place if that is known."""
        return self.inner.get(name) or Setting(self.value[name], self.span)


Layer = Mapping[str, Setting]
"""Settings that are set at one place: a folder of mvbuild.yml, a model's YAML, a config() call."""
