"""commits of one run -> the states that they will produce, and one commit of all of them at its end (`run --atomic`).

Until then the MVs of the run read each other by snapshot id: what was written is on audit branches or in scratch tables, which remain until
the end of the run, however it ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import field, replace
from threading import Lock

from mvbuild.dataclass import dataclass
from mvbuild.freshness.observed import World
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import Catalog, CatalogError
from mvbuild.ports.clock import Clock
from mvbuild.ports.commits import Change, TableCommit, ViewCommit
from mvbuild.ports.states import State, TableState, ViewState


class _NotPublished(Exception):
    """Ends the workplaces like a failure: what was written there is removed."""


@dataclass
class PendingCommits:
    """The pending commits of a run. Thread-safe."""

    catalog: Catalog
    clock: Clock
    _changes: list[Change] = field(default_factory=list)
    _states: dict[TableIdentifier, State] = field(default_factory=dict)
    _staging_areas: list[ExitStack] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def add(self, changes: Sequence[TableCommit | ViewCommit], world: World, written: TableState | None) -> dict[TableIdentifier, State]:
        """Add changes, and apply them to what `world` has. `written` is a table that was written, if there is one."""
        after = _After(world=world, written=written, now_ms=self.clock.now_ms())
        found = after.states(changes)
        with self._lock:
            self._changes += changes
            self._states.update(found)
        return found

    def keep(self, staging_area: ExitStack) -> None:
        """Keep a place that was written to until the end of the run."""
        with self._lock:
            self._staging_areas.append(staging_area.pop_all())

    def over(self, states: Mapping[TableIdentifier, State]) -> dict[TableIdentifier, State]:
        """States of the catalog as they will be after the commit."""
        return {identifier: self._states.get(identifier, state) for identifier, state in states.items()}

    @property
    def is_empty(self) -> bool:
        return not self._changes

    def commit(self) -> None:
        """Commit everything, or raise CommitConflict and commit nothing. After any other CatalogError, the outcome is unknown."""
        try:
            self.catalog.commit(self._changes)
        except BaseException:
            self.discard()
            raise
        self._end(None)

    def discard(self) -> None:
        """Publish nothing; what was written is removed."""
        self._end(_NotPublished())

    def _end(self, failure: _NotPublished | None) -> None:
        with ExitStack() as every:
            for staging_area in self._staging_areas:
                every.callback(_closed, staging_area, failure)
        self._staging_areas.clear()
        self._changes.clear()
        self._states.clear()


def _closed(staging_area: ExitStack, failure: _NotPublished | None) -> None:
    # The next run removes what cannot be removed now, as after a crash; it does not affect what was published.
    with suppress(_NotPublished, CatalogError), staging_area:
        if failure is not None:
            raise failure


@dataclass(frozen=True, kw_only=True)
class _After:
    """A world, after some changes."""

    world: World
    written: TableState | None
    now_ms: int

    def states(self, changes: Sequence[TableCommit | ViewCommit]) -> dict[TableIdentifier, State]:
        tables = {change.identifier: self._table(change) for change in changes if isinstance(change, TableCommit)}
        views = {change.identifier: self._view(change) for change in changes if isinstance(change, ViewCommit)}
        found: dict[TableIdentifier, State] = dict(views)
        for identifier, table in tables.items():
            if table.of_view is None:
                found[identifier] = table
            else:
                view = views.get(identifier) or self.world.observed.view(identifier)
                assert view is not None, identifier
                found[identifier] = replace(view, storage=table)
        return found

    def _table(self, change: TableCommit) -> TableState:
        if change.of_view is not None:
            view = self.world.observed.view(change.of_view)
            before = view.storage if view else None
        else:
            before = self.world.observed.table(change.identifier)
        table = self.written or before
        assert table is not None, change.identifier
        kept = {k: v for k, v in (before or table).properties.items() if k not in change.remove_properties}
        properties = {**kept, **change.set_properties}
        after = replace(table, identifier=change.identifier, uuid=change.expect_uuid, of_view=change.of_view, properties=properties)
        if change.set_snapshot_id is None:
            return after
        head = change.set_snapshot_id
        return replace(
            after,
            current_snapshot_id=head,
            refs={**after.refs, "main": head},
            branches=after.branches | {"main"},
            snapshot_log=(*after.snapshot_log, (self.now_ms, head)),
            is_held=change.staged is not None,
            mv=None if change.staged is not None else after.mv,
        )

    def _view(self, change: ViewCommit) -> ViewState:
        before = self.world.observed.view(change.identifier)
        kept = {k: v for k, v in before.properties.items() if k not in change.remove_properties} if before else {}
        version = change.version_id or (before.version_id if before else 1)
        uuid = before.uuid if before else change.uuid
        assert uuid is not None, change.identifier
        return ViewState(
            identifier=change.identifier,
            uuid=uuid,
            location=before.location if before else "",
            metadata_location=before.metadata_location if before else "",
            version_id=version,
            last_version_id=max(version, before.last_version_id if before else 1),
            representations=change.representations,
            spark_versions={**(before.spark_versions if before else {}), **_spark(version, change)},
            default_catalog=before.default_catalog if before else None,
            default_namespace=change.default_namespace,
            schema=change.schema,
            properties={**kept, **change.properties},
        )


def _spark(version: int, change: ViewCommit) -> dict[int, str]:
    return {version: change.representations["spark"]} if "spark" in change.representations else {}
