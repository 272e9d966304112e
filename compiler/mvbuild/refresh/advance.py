"""MV whose rows would be the same + RunSession -> Outcome: only its record moves on, in a commit without a snapshot of other rows."""

from __future__ import annotations

from collections.abc import Mapping

from mvbuild.formats import failed_tests
from mvbuild.freshness.indirect import indirect
from mvbuild.freshness.leaves import node_inputs
from mvbuild.freshness.observed import Leaf, Pin, World
from mvbuild.graph.definition import definition
from mvbuild.graph.model import ModelNode
from mvbuild.incremental.choose import StrategyChoice
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.refresh.choosing import result_details
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.recording import record_of
from mvbuild.refresh.result import TestResult
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.views import properties_commit
from mvbuild.storage.commits import recorded, restated
from mvbuild.storage.history import current_refresh_id
from mvbuild.storage.proof import PROVEN
from mvbuild.storage.schemas_read import schemas_read, stale_schemas


def advance(
    session: RunSession,
    world: World,
    node: ModelNode,
    pins: Mapping[Leaf, Pin],
    started_ms: int,
    choice: StrategyChoice,
    tests: tuple[TestResult, ...],
    mark: str = "",
) -> Outcome:
    """Readers downstream see no change. `tests`: the results of tests on the rows, which do not change. `mark`: see storage.proof."""
    storage, view = world.observed.table(node.storage), world.observed.view(node.identifier)
    assert storage is not None, node.id
    assert view is not None, node.id
    record = record_of(world, node_inputs(world.graph, node), pins, view.version_id, started_ms)
    schemas = schemas_read(p.table for p in pins.values() if p.moves)
    commit = recorded(
        node,
        storage,
        record,
        current_refresh_id(storage),
        indirect=indirect(world, node, record),
        set_properties={**schemas, PROVEN: mark} if mark else schemas,
        also_remove=(*stale_schemas(storage.properties, schemas), *((failed_tests.KEY,) if failed_tests.KEY in storage.properties else ())),
        restate=restated(storage, record, fingerprint(definition(world.graph, node).text)),
    )
    of_view = properties_commit(world, node)
    session.publish([commit] if of_view is None else [of_view, commit], world)
    message = choice.message or "the rows are the same"
    return Outcome(message=message, reused=True, tests=tests, details=result_details(choice, None))
