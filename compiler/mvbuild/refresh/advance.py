"""MV whose rows would be the same + RunSession -> Outcome: only its record moves on, in a commit without a snapshot of other rows."""

from __future__ import annotations

from mvbuild.freshness.indirect import indirect
from mvbuild.incremental.choose import StrategyChoice
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.pinned import Pinned
from mvbuild.refresh.recording import record_of
from mvbuild.refresh.report import result_details
from mvbuild.refresh.result import TestResult
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.views import properties_commit
from mvbuild.storage.commits import recorded, restated
from mvbuild.storage.history import current_refresh_id
from mvbuild.storage.refresh_properties import after_advance


def advance(session: RunSession, pinned: Pinned, choice: StrategyChoice, tests: tuple[TestResult, ...], mark: str = "") -> Outcome:
    """Readers downstream see no change. `tests`: the results of tests on the rows, which do not change. `mark`: see storage.proof."""
    node, world = pinned.node, pinned.world
    storage, view = pinned.storage, world.observed.view(node.identifier)
    assert storage is not None, node.id
    assert view is not None, node.id
    record = record_of(pinned, view.version_id)
    number = current_refresh_id(storage)
    changes = after_advance(storage, number, schemas=pinned.schemas, clock=pinned.clock, mark=mark)
    commit = recorded(
        node,
        storage,
        record,
        number,
        indirect=indirect(world, node, record),
        set_properties=changes.set,
        also_remove=changes.remove,
        restate=restated(storage, record, pinned.definition_mark),
    )
    of_view = properties_commit(world, node)
    session.publish([commit] if of_view is None else [of_view, commit], world)
    message = choice.message or "the rows are the same"
    return Outcome(message=message, reused=True, tests=tests, details=result_details(choice, None))
