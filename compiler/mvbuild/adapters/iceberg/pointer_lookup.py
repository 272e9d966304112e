"""pointers -> Lookup: what some names led to at one time, and the metadata files there, which are read on request."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.entries import read_states
from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

    from mvbuild.adapters.iceberg.files import Files
    from mvbuild.adapters.iceberg.pointers import Kind
    from mvbuild.names import TableIdentifier
    from mvbuild.ports.states import State, Unreadable


@dataclass(frozen=True, kw_only=True)
class PointerLookup:
    """Names whose pointers are known."""

    files: Files
    guard: Callable[[], AbstractContextManager[None]]
    found: Mapping[TableIdentifier, tuple[str, Kind]]
    """Metadata location and kind of each Iceberg table and view."""
    others: Mapping[TableIdentifier, Unreadable]
    """Names that are not Iceberg's."""

    @cached_property
    def stamps(self) -> Mapping[TableIdentifier, str | None]:
        stamp = self.files.stamp
        return {**{identifier: stamp(at[0]) for identifier, at in self.found.items()}, **dict.fromkeys(self.others)}

    @cached_property
    def views(self) -> frozenset[TableIdentifier]:
        return frozenset(identifier for identifier, (_, kind) in self.found.items() if kind != "TABLE")

    @property
    def tags(self) -> Mapping[str, str]:
        """None: pointers are cheap."""
        return {}

    def load(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        wanted = list(identifiers)
        present = [(identifier, *self.found[identifier]) for identifier in wanted if identifier in self.found]
        with self.guard():
            states = dict(read_states(self.files, present))
        return {**states, **{identifier: self.others[identifier] for identifier in wanted if identifier in self.others}}

    def stamp(self, location: str) -> str | None:
        return self.files.stamp(location)
