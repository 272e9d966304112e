"""name in the SQL of a view + the view -> the full name that it means there, and where that table lies.

A view of the catalog keeps the `default-catalog` and `default-namespace` of the session that wrote it: they complete its names, whatever
the project's own catalog is called. A missing `default-catalog` means the view's own catalog (Iceberg view specification).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mvbuild.graph.outside import Outside
from mvbuild.names import TableIdentifier
from mvbuild.parse.model import Read
from mvbuild.ports.sources import SourceLocation
from mvbuild.ports.states import ViewState
from mvbuild.project.loaded import LoadedProject


def name_in_view(read: Read, view: ViewState, catalogs: Collection[str] = ()) -> TableIdentifier:
    """The full name, completed as Spark completes it: a name that begins with that of a catalog stays in it. `catalogs`: those that the
    project knows besides the view's own. Where all is in one catalog, two parts are a namespace and a table, whatever they are called."""
    own, parts = view.identifier.catalog, read.parts
    default = _known(view.default_catalog or own, (own, *catalogs)) or view.default_catalog or own
    named = _known(parts[0], (own, default, *catalogs)) if len(parts) > 1 else None
    if named is not None and (len(parts) > 2 or (named, default) != (own, own)):
        return TableIdentifier(named, parts[1:-1], parts[-1])
    return TableIdentifier(default, parts[:-1] or view.default_namespace, parts[-1])


def _known(name: str, catalogs: Collection[str]) -> str | None:
    """A catalog's name in the spelling that is known: as everywhere in a project its case does not count."""
    return next((one for one in catalogs if one.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogs:
    """The catalogs of a project: its target's, the other metastores of its sources, and those that only Spark is configured for."""

    outside: Outside
    names: tuple[str, ...]
    """All but the target's own."""

    @staticmethod
    def of(project: LoadedProject) -> Catalogs:
        outside = Outside.of(project)
        metastores = (source.catalog for source in outside.metastores.values() if source.catalog)
        return Catalogs(outside=outside, names=tuple(dict.fromkeys((*metastores, *outside.of_spark_alone))))

    def place(self, identifier: TableIdentifier) -> SourceLocation | None:
        """Where a table of another metastore lies, if a source of the project tells how to reach that one."""
        declared = self.outside.metastores.get(identifier.catalog.lower())
        if declared is None or identifier.catalog.lower() == self.outside.project.target.catalog_name.lower():
            return None
        return SourceLocation(identifier=identifier, type="iceberg-metastore", options=declared.options)
