"""states of a remote catalog -> Lookup: such a catalog returns the metadata with the name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from mvbuild.adapters.iceberg.files import is_unique
from mvbuild.ports.states import ViewState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mvbuild.adapters.iceberg.files import Files
    from mvbuild.names import TableIdentifier
    from mvbuild.ports.states import State


@dataclass(frozen=True, kw_only=True)
class RemoteLookup:
    """Names whose states are known."""

    states: Mapping[TableIdentifier, State]
    files: Files

    @cached_property
    def stamps(self) -> Mapping[TableIdentifier, str | None]:
        places = ((identifier, state.metadata_location) for identifier, state in self.states.items())
        return {identifier: place if is_unique(place) else None for identifier, place in places}

    @cached_property
    def views(self) -> frozenset[TableIdentifier]:
        return frozenset(identifier for identifier, state in self.states.items() if isinstance(state, ViewState))

    def load(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        return {identifier: self.states[identifier] for identifier in identifiers if identifier in self.states}

    def stamp(self, location: str) -> str | None:
        return self.files.stamp(location)
