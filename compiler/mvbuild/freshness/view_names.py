"""name in the SQL of a view + the view -> the full name that it means there, and where that table is.

A view of the catalog keeps the `default-catalog` and `default-namespace` of the session that wrote it. They complete its names, whatever
the project calls the catalog. A missing `default-catalog` means the view's own catalog (Iceberg view specification).
"""

from __future__ import annotations

from collections.abc import Collection

from mvbuild.dataclass import dataclass
from mvbuild.graph.outside import Outside
from mvbuild.names import TableIdentifier
from mvbuild.parse.model import Read
from mvbuild.ports.sources import SourceLocation
from mvbuild.ports.states import ViewState
from mvbuild.project.loaded import LoadedProject


def name_in_view(read: Read, view: ViewState, catalogs: Collection[str] = ()) -> TableIdentifier:
    """The full name, completed as Spark does: a name that begins with a catalog is in that catalog. `catalogs`: those that the project
    knows besides the view's own. If everything is in one catalog, two parts are always a namespace and a table."""
    own, parts = view.identifier.catalog, read.parts
    default = _known(view.default_catalog or own, (own, *catalogs)) or view.default_catalog or own
    named = _known(parts[0], (own, default, *catalogs)) if len(parts) > 1 else None
    if named is not None and (len(parts) > 2 or (named, default) != (own, own)):
        return TableIdentifier(named, parts[1:-1], parts[-1])
    return TableIdentifier(default, parts[:-1] or view.default_namespace, parts[-1])


def _known(name: str, catalogs: Collection[str]) -> str | None:
    """A catalog's name in the known spelling: as everywhere in a project, case does not matter."""
    return next((one for one in catalogs if one.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogs:
    """The catalogs of a project: its target's, the other metastores of its sources, and those that are only configured for Spark."""

    outside: Outside
    names: tuple[str, ...]
    """All except the target's own."""

    @staticmethod
    def of(project: LoadedProject) -> Catalogs:
        outside = Outside.of(project)
        metastores = (source.catalog for source in outside.metastores.values() if source.catalog)
        return Catalogs(outside=outside, names=tuple(dict.fromkeys((*metastores, *outside.of_spark_alone))))

    def place(self, identifier: TableIdentifier) -> SourceLocation | None:
        """Where a table of another metastore is, if a source of the project gives access to that metastore."""
        declared = self.outside.metastores.get(identifier.catalog.lower())
        if declared is None or identifier.catalog.lower() == self.outside.project.target.catalog_name.lower():
            return None
        return SourceLocation(identifier=identifier, type="iceberg-metastore", options=declared.options)
