"""Declared sources -> the SourceLocations of tables that the target's catalog does not have: in other metastores, and at paths."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note, error
from mvbuild.names import TableIdentifier
from mvbuild.ports.sources import SourceLocation
from mvbuild.project.loaded import LoadedProject, SourceTable

_CATALOG = re.compile(r"[A-Za-z_]\w*\Z")


@dataclass(frozen=True, kw_only=True)
class Outside:
    """The other metastores that the sources name, by their names in lower case."""

    project: LoadedProject
    metastores: Mapping[str, SourceTable]
    """The source table with the metastore's properties."""
    diagnostics: tuple[Diagnostic, ...] = field(default=())

    @staticmethod
    def of(project: LoadedProject) -> Outside:
        metastores: dict[str, SourceTable] = {}
        diagnostics: list[Diagnostic] = []
        for source in project.sources:
            if source.type == "iceberg-metastore" and source.options and source.catalog is not None:
                first = metastores.setdefault(source.catalog.lower(), source)
                diagnostics += _problems(project, source, first)
        return Outside(project=project, metastores=metastores, diagnostics=tuple(dict.fromkeys(diagnostics)))

    @property
    def of_spark_alone(self) -> tuple[str, ...]:
        """Catalogs that the target configures for Spark: mvbuild knows their names but cannot read them."""
        settings = (
            key.removeprefix("spark.sql.catalog.") for key in self.project.target.spark.config if key.startswith("spark.sql.catalog.")
        )
        known = {self.project.target.catalog_name.lower(), *self.metastores}
        return tuple(name for name in dict.fromkeys((*settings, "spark_catalog")) if "." not in name and name.lower() not in known)

    @property
    def locations(self) -> tuple[SourceLocation, ...]:
        """The locations of all sources outside the target's catalog, each once."""
        found = (self.location(source) for source in self.project.sources)
        return tuple({place.identifier: place for place in found if place}.values())

    def location(self, source: SourceTable) -> SourceLocation | None:
        """None for a table of the target's own catalog."""
        if source.type != "iceberg-metastore":
            path = absolute(source.path or "", self.project.root.as_posix())
            return SourceLocation(identifier=TableIdentifier("", (), path), type=source.type, options=source.options)
        declared = self.metastores.get((source.catalog or "").lower())
        if declared is None or declared.catalog is None or declared.catalog.lower() == self.project.target.catalog_name.lower():
            return None
        identifier = TableIdentifier(declared.catalog, source.namespace, source.identifier)
        return SourceLocation(identifier=identifier, type=source.type, options=declared.options)

    def identifier(self, parts: tuple[str, ...]) -> TableIdentifier | None:
        """A plain name that begins with another metastore."""
        declared = self.metastores.get(parts[0].lower()) if len(parts) > 2 else None
        return TableIdentifier(declared.catalog, parts[1:-1], parts[-1]) if declared and declared.catalog else None


def absolute(path: str, root: str) -> str:
    """The unique spelling of a table's location: an absolute path for local ones, otherwise the URI; without a slash at the end.

    >>> absolute("../raw/orders/", "/srv/shop"), absolute("file:///raw/orders", "/srv/shop"), absolute("s3://raw/orders/", "/srv/shop")
    ('/srv/raw/orders', '/raw/orders', 's3://raw/orders')
    """
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    elif "://" in path:
        return path.rstrip("/")
    return os.path.normpath(os.path.join(root, path))  # noqa: PTH118  (Path does not take `..` out)


def _problems(project: LoadedProject, source: SourceTable, first: SourceTable) -> Iterator[Diagnostic]:
    name, span = source.catalog or "", source.places.get("catalog", source.span)
    if name.lower() == project.target.catalog_name.lower():
        message = f"'properties' are for another metastore, and catalog '{name}' is the target's own"
        yield error("bad-config", message, source.places.get("properties", span), help="Remove them, or rename the other metastore.")
    elif not _CATALOG.match(name) or name.lower() == "spark_catalog":
        yield error(
            "bad-config", f"Spark does not accept '{name}' as the name of a catalog", span, help="Use letters, digits and underscores."
        )
    elif (source.catalog, dict(source.options)) != (first.catalog, dict(first.options)):
        notes = (Note(message="the first ones", span=first.places.get("properties", first.span)),)
        message = f"The catalog '{name}' has different properties in two places"
        place = source.places.get("properties", span)
        yield error("bad-config", message, place, help="Give it the same properties everywhere.", notes=notes)
