"""SourceLocations -> TableStates: base tables of another metastore, or at a path. Each type imports its library only when it is read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING

from mvbuild.ports.catalog import CatalogError
from mvbuild.ports.sources import SourceError, SourceLocation
from mvbuild.ports.states import TableState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mvbuild.names import TableIdentifier
    from mvbuild.ports.catalog import Catalog

_READERS = 8


class OpenedSources:
    """The port. `properties` are those of the target's catalog, for paths without storage options of their own."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._metastores: dict[str, Catalog] = {}

    def load(self, locations: Iterable[SourceLocation]) -> Mapping[TableIdentifier, TableState]:
        wanted = sorted(locations, key=lambda location: (location.type, location.identifier))
        found: dict[TableIdentifier, TableState] = {}
        paths = [location for location in wanted if location.type != "iceberg-metastore"]
        if paths:
            with ThreadPoolExecutor(min(_READERS, len(paths))) as pool:
                states = pool.map(self._path, paths)
                found |= {one.identifier: state for one, state in zip(paths, states, strict=True) if state is not None}
        others = (location for location in wanted if location.type == "iceberg-metastore")
        for name, group in groupby(others, key=lambda location: location.identifier.catalog):
            found |= self._metastore(name, tuple(group))
        return found

    def _path(self, location: SourceLocation) -> TableState | None:
        if location.type == "deltalake-filesystem":
            from mvbuild.adapters.sources.delta import load
        else:
            from mvbuild.adapters.sources.iceberg_path import load
        return load(location, self._properties)

    def _metastore(self, name: str, locations: tuple[SourceLocation, ...]) -> Mapping[TableIdentifier, TableState]:
        from mvbuild.adapters.sources.metastore import load, opened

        try:
            catalog = self._metastores.get(name) or self._metastores.setdefault(name, opened(name, locations[0].options))
            return load(catalog, locations)
        except SourceError:
            raise
        except CatalogError as exc:
            raise SourceError(str(exc), locations[0].identifier, unreachable=exc.unreachable) from None
