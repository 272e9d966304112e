"""Shop -> the same with a view that another engine wrote, and with another metastore beside the catalog."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.adapters.sources import metastore
from mvbuild.names import TableIdentifier
from mvbuild.ports.commits import TableLayout, ViewCommit
from mvbuild.ports.sources import SourceError, SourceLocation
from mvbuild.ports.states import Schema, TableState
from unit.worlds import SCHEMA, Shop


@dataclass
class Metastores:
    """Other metastores, each a catalog in memory."""

    catalogs: Mapping[str, MemoryCatalog]
    fails: str = ""
    """The name of a table that cannot be read."""
    options: list[Mapping[str, str]] = field(default_factory=list)
    """What each load was given."""

    def load(self, locations: Iterable[SourceLocation]) -> Mapping[TableIdentifier, TableState]:
        found: dict[TableIdentifier, TableState] = {}
        for location in locations:
            self.options.append(location.options)
            if self.fails == location.identifier.name:
                raise SourceError("nobody answers", location.identifier, unreachable=True)
            found.update(metastore.load(self.catalogs[location.identifier.catalog], [location]))
        return found


def other_metastore(of: Shop, *tables: str, catalog: str = "other") -> MemoryCatalog:
    """A metastore with tables of the same columns as those of the catalog."""
    made = MemoryCatalog(catalog)
    for text in tables:
        identifier = TableIdentifier.parse(text, catalog)
        made.ensure_namespace(identifier.namespace)
        made.create_table(identifier, TableLayout(schema=SCHEMA), {})
        made.append_snapshot(identifier, {"id": [7]})
    of.sources = Metastores({catalog: made})
    return made


def write_view(
    of: Shop,
    text: str,
    sql: str,
    *,
    catalog: str | None = None,
    namespace: tuple[str, ...] = (),
    schema: Schema = SCHEMA,
    properties: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """A view that another engine wrote in a session whose current catalog and namespace were these; `catalog` None leaves it out."""
    identifier = TableIdentifier.parse(text, of.catalog.name)
    states = of.catalog.load([identifier])
    before = states.get(identifier)
    change = ViewCommit(
        identifier=identifier,
        expect_metadata_location=before.metadata_location if before else None,
        version_id=before.last_version_id + 1 if before else 1,  # type: ignore[union-attr]
        schema=schema,
        representations={"spark": sql},
        default_namespace=namespace,
        properties=properties,
    )
    of.catalog.ensure_namespace(identifier.namespace)
    made = of.catalog.commit([change])[identifier]
    files = of.catalog._files._contents  # type: ignore[attr-defined]
    content, changed_ms = files[made.metadata_location]
    raw = json.loads(content)
    raw["versions"][-1]["default-catalog"] = catalog
    if catalog is None:
        del raw["versions"][-1]["default-catalog"]
    files[made.metadata_location] = (json.dumps(raw).encode(), changed_ms)
