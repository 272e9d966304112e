"""pointers + metadata files -> Publisher: new metadata is a new file, and a commit swaps the pointers to such files."""

from __future__ import annotations

from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from mvbuild.adapters.iceberg import tables
from mvbuild.adapters.iceberg.branch_files import BranchFiles, BranchPointers
from mvbuild.adapters.iceberg.edits import Editor, table_of
from mvbuild.adapters.iceberg.entries import Entry, key, read_entries, read_table, state, storage_metadata
from mvbuild.adapters.iceberg.failures import Translator
from mvbuild.adapters.iceberg.metadata import Raw, serialize, table_state
from mvbuild.adapters.iceberg.pointer_lookup import PointerLookup
from mvbuild.adapters.iceberg.pointers import numbered
from mvbuild.adapters.iceberg.publish import MV_FILE, publish, table_edit
from mvbuild.adapters.iceberg.publisher import TableMetadata
from mvbuild.adapters.iceberg.table_commits import restating
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import AlreadyExists, CatalogError
from mvbuild.ports.states import State, TableState, Unreadable, ViewState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mvbuild.adapters.iceberg.files import Files
    from mvbuild.adapters.iceberg.pointers import Pointers
    from mvbuild.adapters.iceberg.publisher import Data
    from mvbuild.ports.commits import Change, TableLayout


class PointerPublisher:
    """A catalog whose pointers lead to metadata files that mvbuild reads and writes itself."""

    def __init__(self, *, name: str, pointers: Pointers, files: Files, data: Data, translator: Translator | None = None) -> None:
        self.name = name
        self.files = files
        self.pointers = pointers
        self._data = data
        self._translator = translator or Translator(name, {})

    def guard(self) -> AbstractContextManager[None]:
        return self._translator.guard()

    @property
    def atomic(self) -> bool:
        return self.pointers.atomic

    @property
    def has_views(self) -> bool:
        return self.pointers.has_views

    @property
    def spark_reads_views(self) -> bool:
        return self.pointers.spark_reads_views

    def on_branch(self, branch: str) -> PointerPublisher:
        found = copy(self)
        found.pointers = cast("Pointers", BranchPointers(self.pointers, branch))
        found.files = cast("Files", BranchFiles(self.files, branch))
        return found

    def load(self, identifiers: Sequence[TableIdentifier]) -> Mapping[TableIdentifier, State]:
        return self._find(identifiers).load(identifiers)

    def look_up(self, identifiers: Sequence[TableIdentifier], tags: Mapping[str, str]) -> PointerLookup:  # noqa: ARG002
        return self._find(identifiers)

    def _find(self, identifiers: Sequence[TableIdentifier]) -> PointerLookup:
        keys = [key(identifier) for identifier in identifiers]
        found = self.pointers.find(keys)
        present = {identifier: found[at] for identifier, at in zip(identifiers, keys, strict=True) if at in found}
        missing = [identifier for identifier in identifiers if identifier not in present]
        foreign = self.pointers.foreign(list(map(key, missing))) if missing else {}
        others = {i: _not_ours(i, foreign[key(i)]) for i in missing if key(i) in foreign}
        return PointerLookup(files=self.files, guard=self.guard, found=present, others=others)

    def stamps(self, identifiers: Sequence[TableIdentifier]) -> Mapping[TableIdentifier, str]:
        by_key = {key(identifier): identifier for identifier in identifiers}
        return {by_key[at]: location for at, (location, _) in self.pointers.find(by_key).items()}

    def read(self, identifier: TableIdentifier) -> TableMetadata | None:
        location, kind = self.pointers.find([key(identifier)]).get(key(identifier), ("", ""))
        if kind != "TABLE":
            return None
        return TableMetadata(raw=read_table(self.files, identifier, location), location=location, data=self._data)

    def read_state(self, table: TableState) -> TableMetadata:
        return TableMetadata(raw=storage_metadata(self.files, table), location=table.metadata_location, data=self._data)

    def metadata_files(self, table: TableState, found: TableMetadata) -> set[str]:
        files = {found.location, *self.pointers.hints(key(table.identifier))}
        if table.of_view is None or table.mv is None:
            return files | {entry["metadata-file"] for entry in found.raw.get("metadata-log") or ()}
        log = {entry["metadata-file"] for entry in table.mv.raw.get("metadata-log") or ()}
        # The file that embeds the table is the current one, or it is in the log of the current one.
        pointer = self.pointers.find([key(table.of_view)]).get(key(table.of_view))
        for now in read_entries(self.files, [(table.of_view, *pointer)] if pointer else []):
            if isinstance(now, CatalogError):
                raise now
            held = now.mv.raw.get("metadata-log") or () if now.mv else ()
            log |= {now.location, now.mv_location, *(entry["metadata-file"] for entry in held)}
        of_log = [location for location in log if location.endswith(MV_FILE)]
        entries = read_entries(self.files, [(table.identifier, location, "MV") for location in of_log])
        return files | log | {entry.mv.storage_metadata_location for entry in entries if isinstance(entry, Entry) and entry.mv}

    def names(self, namespace: tuple[str, ...]) -> Iterable[TableIdentifier]:
        return map(self._identifier, self.pointers.names(".".join(namespace)))

    def views(self) -> Iterable[TableIdentifier]:
        return map(self._identifier, self.pointers.views())

    def add_namespace(self, namespace: tuple[str, ...]) -> None:
        self.pointers.add_namespace(".".join(namespace))

    def scratch_location(self, table: TableState, scratch: TableIdentifier) -> str:  # noqa: ARG002
        return self.pointers.scratch_location(scratch)

    def staging_location(self, table: TableState, scratch: TableIdentifier) -> str | None:
        self.pointers.note_base(key(scratch), table.location)
        # In a file-system warehouse, Spark finds a table only at the path of its name.
        return None if self.has_views else self.pointers.scratch_location(scratch)

    def create(self, identifier: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        self._editor().require_namespace(identifier)
        return self._create(identifier, tables.new_table(self.pointers.location(identifier), layout, properties))

    def register(self, scratch: TableIdentifier, raw: Raw) -> TableState:
        self.add_namespace(scratch.namespace)
        return self._create(scratch, raw)

    def new_storage(self, view: TableIdentifier, layout: TableLayout, properties: Mapping[str, str]) -> TableState:
        raw = tables.new_table(self.pointers.location(view), layout, properties)
        location = numbered(tables.metadata_folder(raw), None, 0, ".metadata.json")
        self.files.write(location, serialize(raw, location))
        return replace(table_state(view, location, raw), of_view=view)

    def edit(self, identifier: TableIdentifier, make: Callable[[Raw, Data], Raw]) -> TableState:
        return self._publish_table(identifier, lambda current: make(table_of(identifier, current), self._data))

    def commit(self, changes: Sequence[Change]) -> Mapping[TableIdentifier, TableState | ViewState]:
        edits = self._editor().edits(changes)
        together = [edits] if self.atomic and edits else [[edit] for edit in edits]
        return {entry.identifier: state(entry) for some in together for entry in publish(self.pointers, self.files, some)}

    def remove(self, identifier: TableIdentifier, location: str) -> bool:
        return self.pointers.delete(key(identifier), location)

    def below(self, location: str) -> Iterable[tuple[str, int]]:
        return (found for place in (location, *self.pointers.borrowed(location)) for found in self.files.below(place))

    def close(self) -> None:
        close = getattr(self.pointers, "close", None)
        if close:
            close()

    def _identifier(self, found: tuple[str, str]) -> TableIdentifier:
        namespace, name = found
        return TableIdentifier(self.name, tuple(namespace.split(".")), name)

    def _create(self, identifier: TableIdentifier, raw: Raw) -> TableState:
        def make(current: Entry | None) -> Raw:
            if current is not None:
                raise AlreadyExists(f"{identifier} already exists: it is a {'table' if current.kind == 'TABLE' else 'view'}.")
            return raw

        return self._publish_table(identifier, make)

    def _publish_table(self, identifier: TableIdentifier, make: Callable[[Entry | None], Raw]) -> TableState:
        (entry,) = publish(self.pointers, self.files, [table_edit(identifier, make)])
        found = state(entry)
        assert isinstance(found, TableState)
        return found

    def _editor(self) -> Editor:
        return Editor(self.pointers, self.files, restate=restating(self._data), catalog=self.name)


def _not_ours(identifier: TableIdentifier, what: str) -> Unreadable:
    help = "Read the tables of its query, or write the query as a model."
    return Unreadable(identifier=identifier, reason=f"{identifier} is {what}", code="unsupported-view", help=help)
