"""MVs + their policies -> their storages compacted and cleaned up, one MV after another. Freshness does not change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import TypeVar

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, error
from mvbuild.freshness.observed import World
from mvbuild.freshness.readable import unreadable
from mvbuild.graph.model import ModelNode, NodeId
from mvbuild.lifecycle.auxiliary_upkeep import maintain_views
from mvbuild.lifecycle.compaction import Compaction, compact, file_count, is_needed
from mvbuild.lifecycle.drop import everything
from mvbuild.lifecycle.expiry import before, expirable, recorded_of
from mvbuild.lifecycle.orphans import orphans
from mvbuild.ports.catalog import CatalogError, CommitConflict
from mvbuild.ports.commits import TableCommit
from mvbuild.ports.engine import EngineError, QueryError
from mvbuild.ports.states import State, TableState, ViewState
from mvbuild.refresh.run import remove_leftovers
from mvbuild.refresh.run_id import started_ms
from mvbuild.refresh.session import RunSession
from mvbuild.storage.history import PUBLISHED, only_named_in_property

ATTEMPTS = 3
T = TypeVar("T")


@dataclass(kw_only=True)
class Maintained:
    """What was done to one MV or, in a dry run, what would be done."""

    node: NodeId
    compaction: Compaction | None = None
    """In a dry run, `before` is the maximum, and `after` 0: only the engine finds out which files can be combined."""
    snapshots: int = 0
    expired_files: int = 0
    dropped_views: int = 0
    """Auxiliary views that no refresh needs any more."""
    orphans: int = 0
    notes: list[str] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def maintain(
    session: RunSession, nodes: Iterable[ModelNode], *, dry_run: bool, on_done: Callable[[Maintained], None]
) -> tuple[Maintained, ...]:
    """If one MV's storage cannot be maintained, that is reported, and the others continue."""
    if not dry_run:
        remove_leftovers(session.world, session)
    around = everything(session.catalog, _namespaces(session))
    done = []
    for node in nodes:
        _reload(session, node)
        one = Maintained(node=node.id)
        _one(session, node, one, around, dry_run=dry_run)
        done.append(one)
        on_done(one)
    return tuple(done)


def _one(session: RunSession, node: ModelNode, one: Maintained, around: list[State], *, dry_run: bool) -> None:
    broken = unreadable(session.world, node)
    if broken is not None:
        one.diagnostics.append(broken)
        return
    if session.world.observed.table(node.storage) is None:
        one.notes.append("it was never refreshed")
        return
    began_ms = session.clock.now_ms()
    for work in (_compact, _expire):
        with _errors_reported(one, node):
            work(session, node, one, began_ms, dry_run=dry_run)
    with _errors_reported(one, node):
        upkeep = maintain_views(session, node, _storage(session, node), around, began_ms=began_ms, dry_run=dry_run)
        one.snapshots += upkeep.snapshots
        one.expired_files += upkeep.files
        one.dropped_views = len(upkeep.dropped)
        one.orphans += upkeep.orphans
    with _errors_reported(one, node):
        policy = node.model.config.maintain
        before_ms = before(began_ms, policy.orphans_after)
        found = _again(session, node, lambda: orphans(session, _storage(session, node), around, before_ms=before_ms))
        one.orphans += len(found) if dry_run else session.catalog.files.delete(found)


def _compact(session: RunSession, node: ModelNode, one: Maintained, began_ms: int, *, dry_run: bool) -> None:  # noqa: ARG001
    storage = _storage(session, node)
    if not node.model.config.maintain.compact or not is_needed(storage):
        return
    if any(started_ms(branch) is not None for branch in storage.branches):
        one.notes.append("it is being refreshed, and was not compacted")
        return
    one.compaction = Compaction(before=file_count(storage), after=0)
    if not dry_run:
        try:
            after = compact(session, node, storage)
        except BaseException as exc:
            one.compaction = None
            if isinstance(exc, CatalogError | EngineError | QueryError) and _is_done(session, node, storage):
                one.notes.append("another process changed it, and there is nothing left to compact")
                return
            raise
        done = Compaction(before=file_count(storage), after=file_count(after))
        one.compaction = done if after.current_snapshot_id != storage.current_snapshot_id else None
        if one.compaction is None:
            one.notes.append("no files were worth compacting")


def _expire(session: RunSession, node: ModelNode, one: Maintained, began_ms: int, *, dry_run: bool) -> None:
    config, catalog = node.model.config, session.catalog
    for attempt in range(ATTEMPTS):
        _reload(session, node)
        storage = _storage(session, node)
        read = recorded_of(_world(session, dry_run=dry_run), storage)
        gone = expirable(storage, before_ms=before(began_ms, config.maintain.expire_after), keep=config.refresh_history, recorded=read)
        if dry_run or not gone:
            one.snapshots = len(gone)
            return
        named = only_named_in_property(storage, gone)
        commit = TableCommit(
            identifier=storage.of_view or storage.identifier,
            of_view=storage.of_view,
            expect_uuid=storage.uuid,
            expect_snapshot_id=storage.current_snapshot_id,
            expire=gone,
            set_properties={PUBLISHED: ",".join(map(str, named))} if named else {},
            remove_properties=(PUBLISHED,) if PUBLISHED in storage.properties and not named else (),
        )
        try:
            had = catalog.files.of(storage)
            session.observe(catalog.commit([commit]))
        except CatalogError as exc:
            # A refresh was faster, or another `maintain`, which expired snapshots that are read here.
            if exc.unreachable or attempt + 1 == ATTEMPTS:
                raise
            continue
        one.snapshots = len(gone)
        kept = _again(session, node, lambda: catalog.files.of(_storage(session, node)))
        one.expired_files = catalog.files.delete(had - kept)
        return


def _again(session: RunSession, node: ModelNode, look: Callable[[], T]) -> T:
    """The result on the current storage: another process may expire what is being read."""
    for _ in range(ATTEMPTS - 1):
        _reload(session, node)
        try:
            return look()
        except CatalogError as exc:
            if exc.unreachable:
                raise
    _reload(session, node)
    return look()


def _is_done(session: RunSession, node: ModelNode, before: TableState) -> bool:
    """Whether another process has changed a storage so that nothing is left to compact."""
    _reload(session, node)
    now = session.world.observed.table(node.storage)
    return now is not None and now.current_snapshot_id != before.current_snapshot_id and not is_needed(now)


def _reload(session: RunSession, node: ModelNode) -> None:
    session.reload([i for i in (node.identifier, node.storage) if i])


def _world(session: RunSession, *, dry_run: bool) -> World:
    """The current records of the other MVs: a run may have read a snapshot since this began."""
    if not dry_run:
        session.reload([i for n in session.world.graph.views for i in (n.identifier, n.storage) if i])
    return session.world


def _storage(session: RunSession, node: ModelNode) -> TableState:
    storage = session.world.observed.table(node.storage)
    if storage is None:
        raise CommitConflict(f"{node.identifier} was dropped in the meantime")
    return storage


def _namespaces(session: RunSession) -> set[tuple[str, ...]]:
    """The namespaces of tables that may share directories with the project's: after a rename, these need not be the namespaces of the
    names."""
    states = session.world.observed.states.values()
    mine = {s.identifier.namespace for s in states if isinstance(s, TableState | ViewState) and s.identifier.namespace}
    return mine | {i.namespace for i in session.catalog.list_views()}


@contextmanager
def _errors_reported(one: Maintained, node: ModelNode) -> Iterator[None]:
    span, name = node.model.file.line_span(1), node.model.name
    try:
        yield
    except CommitConflict as exc:
        one.diagnostics.append(error("commit-conflict", f"'{name}': {exc}", span))
    except CatalogError as exc:
        one.diagnostics.append(error("catalog-unreachable" if exc.unreachable else "catalog-error", f"'{name}': {exc}", span))
    except QueryError as exc:
        one.diagnostics.append(error("query-failed", f"'{name}' could not be compacted: {exc}", span, help="Run it again."))
    except EngineError as exc:
        one.diagnostics.append(error(exc.code, f"'{name}': {exc}", span, help=exc.help))
