"""MV whose rows would be the same + RunSession -> Outcome: only its record moves on, in a commit without a snapshot of other rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mvbuild.formats.record import RefreshRecord
from mvbuild.freshness.columns import schemas_read, stale_schemas
from mvbuild.freshness.history import current_refresh_id, history
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.graph.model import ModelNode
from mvbuild.incremental.choose import Choice
from mvbuild.incremental.proof import PROVEN
from mvbuild.ports.states import TableState
from mvbuild.refresh.choosing import facts
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.recording import record_of, recorded, summary_of
from mvbuild.refresh.result import TestResult
from mvbuild.refresh.session import RunSession


def advance(
    session: RunSession,
    world: World,
    node: ModelNode,
    pins: Mapping[Leaf, Pin],
    started_ms: int,
    choice: Choice,
    tests: tuple[TestResult, ...],
    mark: str = "",
) -> Outcome:
    """Nobody downstream sees a change. `tests`: what tests said of the rows as they stay. `mark`: see incremental.proof."""
    storage, view = world.observed.table(node.storage), world.observed.view(node.identifier)
    assert storage is not None, node.id
    assert view is not None, node.id
    record = record_of(world, node_inputs(world.graph, node), pins, view.version_id, started_ms)
    schemas = schemas_read(pins.values())
    commit = recorded(
        node,
        storage,
        record,
        current_refresh_id(storage),
        set_properties={**schemas, PROVEN: mark} if mark else schemas,
        also_remove=stale_schemas(storage.properties, schemas),
        restate=_restated(storage, record),
    )
    session.publish([commit], world)
    message = choice.message or "the rows are the same"
    return Outcome(message=message, reused=True, tests=tests, details=facts(choice, None))


def _restated(storage: TableState, record: RefreshRecord) -> Mapping[str, str] | None:
    """A property holds one snapshot of a table. What else was read of it (a branch, a tag) only the summary of a snapshot holds, so that
    the same files get one of their own."""
    if storage.current_snapshot_id is None or max(Counter(t.uuid for t in record.base_tables).values(), default=0) < 2:
        return None
    strategy = next((past.strategy for past in history(storage) if past.is_current), "")
    return summary_of(record, current_refresh_id(storage), strategy)
