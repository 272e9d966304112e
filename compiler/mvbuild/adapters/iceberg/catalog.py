"""Publisher -> Catalog: the catalog port for every catalog, by edits of table metadata that the publisher makes current."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg import scratch as scratches
from mvbuild.adapters.iceberg import tables
from mvbuild.adapters.iceberg.branch_files import NAMESPACE as BRANCHES
from mvbuild.adapters.iceberg.layout import with_layout
from mvbuild.adapters.iceberg.metadata import current_snapshot_id
from mvbuild.adapters.iceberg.metadata_changes import MetadataChanges
from mvbuild.adapters.iceberg.metadata_files import MetadataFiles
from mvbuild.adapters.iceberg.scratch_tables import drop_scratch
from mvbuild.adapters.iceberg.table_commits import committed, restating
from mvbuild.ports.catalog import AlreadyExists, CatalogError
from mvbuild.ports.commits import TableCommit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.adapters.iceberg.publisher import Data, Publisher, TableMetadata
    from mvbuild.names import TableIdentifier
    from mvbuild.ports.catalog import Lookup
    from mvbuild.ports.changes import RowChange
    from mvbuild.ports.commits import Change, TableLayout
    from mvbuild.ports.states import State, TableState, ViewState


class MetadataCatalog:
    """A catalog whose tables and views are Iceberg metadata. Nothing is connected before the first use."""

    def __init__(self, publisher: Publisher, changes: type[MetadataChanges] = MetadataChanges) -> None:
        self.name = publisher.name
        self._publisher = publisher
        self._guard = publisher.guard
        self.changes = changes(publisher)
        self.files = MetadataFiles(publisher)

    @property
    def atomic(self) -> bool:
        with self._guard():
            return self._publisher.atomic

    @property
    def has_views(self) -> bool:
        with self._guard():
            return self._publisher.has_views

    @property
    def has_branches(self) -> bool:
        # Without views, every MV is one file with one state.
        return self.has_views

    @property
    def spark_reads_views(self) -> bool:
        return self._publisher.spark_reads_views

    def on_branch(self, branch: str) -> MetadataCatalog:
        if not self.has_branches:
            raise CatalogError(f"Catalog '{self.name}' has no views, so it cannot have branches of MVs: '{branch}' cannot be used on it.")
        found = copy(self)
        MetadataCatalog.__init__(found, self._publisher.on_branch(branch), type(self.changes))
        return found

    def load(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        wanted = [found for found in dict.fromkeys(identifiers) if found.catalog == self.name and found.namespace]
        with self._guard():
            return self._publisher.load(wanted)

    def look_up(self, identifiers: Iterable[TableIdentifier], tags: Mapping[str, str]) -> Lookup:
        wanted = [found for found in dict.fromkeys(identifiers) if found.catalog == self.name and found.namespace]
        with self._guard():
            return self._publisher.look_up(wanted, tags)

    def stamps(self, identifiers: Iterable[TableIdentifier]) -> Mapping[TableIdentifier, str]:
        wanted = [found for found in dict.fromkeys(identifiers) if found.catalog == self.name and found.namespace]
        with self._guard():
            return self._publisher.stamps(wanted)

    def list_names(self, namespace: tuple[str, ...]) -> tuple[TableIdentifier, ...]:
        with self._guard():
            return tuple(self._publisher.names(namespace))

    def list_views(self) -> tuple[TableIdentifier, ...]:
        with self._guard():
            return tuple(sorted(view for view in self._publisher.views() if view.namespace[0] not in (scratches.FOLDER, BRANCHES)))

    def ensure_namespace(self, namespace: tuple[str, ...]) -> None:
        with self._guard():
            self._publisher.add_namespace(namespace)

    def create_table(self, identifier: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        with self._guard():
            return self._publisher.create(identifier, layout, properties)

    def create_branch(self, table: TableState, branch: str) -> TableState:
        def make(raw: Raw, data: Data) -> Raw:
            tables.check(raw, table.identifier, table.uuid, table.current_snapshot_id)
            return tables.with_branch(raw, branch, None if table.current_snapshot_id is not None else _empty_snapshot(raw, data))

        with self._guard():
            found = self._publisher.edit(table.identifier, make)
        if branch not in found.refs:
            raise CatalogError(
                f"The catalog did not keep branch '{branch}' of {table.identifier}. mvbuild writes and tests rows on a branch before it "
                "publishes them, so it needs a catalog with Iceberg branches."
            )
        return found

    def stage(self, table: TableState, layout: TableLayout, scratch: TableIdentifier) -> TableState:
        with self._guard():
            found = self._publisher.read_state(table)
            location = self._publisher.staging_location(table, scratch)
            return self._publisher.register(scratch, scratches.staged(found.raw, table, layout, location))

    def new_storage(self, view: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        with self._guard():
            return self._publisher.new_storage(view, layout, properties)

    def pin_schema(self, table: TableState, snapshot_id: int, scratch: TableIdentifier, *, own_schema: bool = False) -> TableState:
        with self._guard():
            found = self._publisher.read_state(table)
            location = self._publisher.scratch_location(table, scratch)
            pinned = scratches.pinned(found.raw, table, snapshot_id, location, own_schema=own_schema)
            return self._publisher.register(scratch, pinned)

    def drop_scratch(self, identifier: TableIdentifier) -> None:
        with self._guard():
            drop_scratch(self._publisher, identifier)

    def commit(self, changes: Sequence[Change]) -> Mapping[TableIdentifier, TableState | ViewState]:
        with self._guard():
            return self._publisher.commit(changes)

    def replace_rows(
        self, identifier: TableIdentifier, layout: TableLayout, columns: Mapping[str, Sequence[Any]], properties: Mapping[str, str]
    ) -> TableState:
        with self._guard():
            found = self._read_or_create(identifier, layout, properties)
            base, laid = found.raw, with_layout(found.raw, layout)
            snapshot = found.data.overwrite(laid, columns)
            added = (laid.get("next-row-id") or 0) + snapshot.get("added-rows", 0) if base["format-version"] > 2 else None
            source = tables.with_snapshots(laid, [snapshot], added)
            change = TableCommit(
                identifier=identifier,
                expect_uuid=base.get("table-uuid", ""),
                expect_snapshot_id=current_snapshot_id(base),
                set_snapshot_id=snapshot["snapshot-id"],
                set_properties={name: value for name, value in properties.items() if name != "format-version"},
            )
            return self._publisher.edit(identifier, lambda raw, data: committed(raw, change, source, restating(data)))

    def change_rows(self, identifier: TableIdentifier, branch: str | None, change: RowChange, summary: Mapping[str, str]) -> bool:
        with self._guard():
            found = self._publisher.read(identifier)
            at = tables.head_of(found.raw, branch) if found is not None else None
            head = next((s for s in found.raw["snapshots"] if s["snapshot-id"] == at), None) if found is not None else None
            snapshot = found.data.row_change(found.raw, head, change, summary) if found is not None and head is not None else None
            if snapshot is None:
                return False
            self._publisher.edit(identifier, lambda raw, _: tables.with_head(raw, snapshot, branch, identifier))
            return True

    def close(self) -> None:
        """Close connections. The catalog can still be used, and opens new ones."""
        self._publisher.close()

    def _read_or_create(self, identifier: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableMetadata:
        found = self._publisher.read(identifier)
        if found is not None:
            return found
        self._publisher.add_namespace(identifier.namespace)
        # Not `properties`: they describe the rows, which do not exist yet.
        kept = {name: value for name, value in properties.items() if name == "format-version"}
        taken: AlreadyExists | None = None
        try:
            self._publisher.create(identifier, layout, kept)
        except AlreadyExists as error:
            taken = error
        found = self._publisher.read(identifier)
        if found is None:
            raise taken or CatalogError(f"Table {identifier} was dropped by another process.")
        return found


def _empty_snapshot(raw: Raw, data: Data) -> Raw:
    snapshot_id = tables.new_snapshot_id()
    location = tables.manifest_list_location(raw, snapshot_id)
    data.empty_manifest_list(location, raw, snapshot_id)
    return tables.empty_snapshot(raw, location, snapshot_id)
