"""MV + layout -> StagingArea: where the engine writes what readers must not see yet; it is always removed at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from mvbuild.dataclass import dataclass
from mvbuild.graph.model import ModelNode
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import AlreadyExists, Catalog, CatalogError, CommitConflict
from mvbuild.ports.commits import TableCommit, TableLayout
from mvbuild.ports.states import TableState, ViewState
from mvbuild.refresh.pinned import Pinned
from mvbuild.refresh.session import RunSession
from mvbuild.storage.format import wanted_format
from mvbuild.storage.layout import same_layout, storage_properties


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingArea:
    """A branch of the storage table; or a scratch copy, if the storage must get another layout (or has one that no entry shows yet), or has
    no entry of its own."""

    before: TableState
    """The storage table before the refresh."""
    table: TableIdentifier
    branch: str | None

    def head(self, written: TableState) -> int:
        """The snapshot that was written."""
        head = written.refs[self.branch] if self.branch else written.current_snapshot_id
        assert head is not None
        return head


@contextmanager
def staging_area(session: RunSession, pinned: Pinned, layout: TableLayout) -> Iterator[StagingArea]:
    """A private place to write to. A branch that was written and published is removed by the commit, otherwise here."""
    with place_in(session, pinned.storage or _create(session.catalog, pinned.node, layout), layout) as place:
        yield place


@contextmanager
def place_in(session: RunSession, storage: TableState, layout: TableLayout) -> Iterator[StagingArea]:
    """A private place to write to a table that exists."""
    if storage.of_view is None and not storage.is_held and same_layout(storage, layout):
        session.catalog.create_branch(storage, session.run.branch)
        try:
            yield StagingArea(before=storage, table=storage.identifier, branch=session.run.branch)
        except BaseException:
            # The original error must be reported, not the failure to remove the branch, for example on a full disk: the next run removes
            # it.
            with suppress(CatalogError):
                drop_branches(session.catalog, storage, (session.run.branch,))
            raise
    else:
        with staged_copy(session, storage, layout) as scratch:
            yield StagingArea(before=storage, table=scratch, branch=None)


@contextmanager
def staged_copy(session: RunSession, table: TableState, layout: TableLayout) -> Iterator[TableIdentifier]:
    """A scratch table with the table's snapshots under another layout, see `Catalog.stage`."""
    scratch = session.new_scratch()
    try:
        session.catalog.stage(table, layout, scratch)
        yield scratch
    finally:
        with suppress(CatalogError):
            session.catalog.drop_scratch(scratch)


def drop_branches(catalog: Catalog, storage: TableState, branches: tuple[str, ...]) -> None:
    """Remove audit branches. If another process commits at the same moment, they remain for the next run to remove.

    An embedded storage has one if the MV was converted while it was refreshed.
    """
    name = storage.of_view or storage.identifier
    found = catalog.load([name]).get(name)
    now = found.storage if isinstance(found, ViewState) else found
    if not isinstance(now, TableState) or not set(branches) & now.branches:
        return
    commit = TableCommit(
        identifier=name, of_view=now.of_view, expect_uuid=now.uuid, expect_snapshot_id=now.current_snapshot_id, drop_branches=branches
    )
    try:
        catalog.commit([commit])
    except CommitConflict:
        return


def _create(catalog: Catalog, node: ModelNode, layout: TableLayout) -> TableState:
    assert node.storage is not None
    if wanted_format(node, None) == "metadata-file":
        catalog.ensure_namespace(node.identifier.namespace)
        return replace(catalog.new_storage(node.identifier, layout, storage_properties(node)), identifier=node.storage)
    catalog.ensure_namespace(node.storage.namespace)
    try:
        return catalog.create_table(node.storage, layout, storage_properties(node))
    except AlreadyExists as exc:
        found = catalog.load([node.storage]).get(node.storage)
        if not isinstance(found, TableState):
            raise CommitConflict(f"{node.storage} is not a table") from exc
        return found
