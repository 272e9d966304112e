"""MV whose rows would be the same + RunSession -> Outcome: only its record moves on, in a commit without a snapshot of other rows."""

from __future__ import annotations

from mvbuild.formats.properties import REFRESH_SNAPSHOT
from mvbuild.freshness.indirect import indirect
from mvbuild.incremental.choice import StrategyChoice
from mvbuild.refresh.auxiliary_views import WrittenView, publish_views
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.pinned import Pinned
from mvbuild.refresh.recording import record_of
from mvbuild.refresh.report import result_details, view_details
from mvbuild.refresh.result import TestResult
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.views import properties_commit
from mvbuild.storage.auxiliary_views import moved_views, named_views
from mvbuild.storage.commits import recorded, restated
from mvbuild.storage.history import current_refresh_id
from mvbuild.storage.refresh_properties import after_advance
from mvbuild.storage.stored import stored


def advance(
    session: RunSession,
    pinned: Pinned,
    choice: StrategyChoice,
    tests: tuple[TestResult, ...],
    mark: str = "",
    views: tuple[WrittenView, ...] | None = None,
) -> Outcome:
    """Readers downstream see no change. `tests`: the results of tests on the rows, which do not change. `mark`: see storage.proof.
    `views`: the auxiliary views from which these rows were computed; None if nothing was computed, because no change of a table matters.
    Then the rows are still those of the same views; but not after rows that happen to be the same were computed without views."""
    node, world = pinned.node, pinned.world
    storage, view = pinned.storage, world.observed.view(node.identifier)
    assert storage is not None, node.id
    assert view is not None, node.id
    record = record_of(pinned, view.version_id)
    number = current_refresh_id(storage)
    changes = after_advance(storage, number, schemas=pinned.schemas, clock=pinned.clock, mark=mark)
    named: dict[str, str] = {}
    if views is None:
        named = moved_views(storage, stored(storage).record, record)
    elif views:
        named = named_views(storage, storage.properties.get(REFRESH_SNAPSHOT, ""), record, [view.named for view in views])
    commit = recorded(
        node,
        storage,
        record,
        number,
        indirect=indirect(world, node, record),
        set_properties={**changes.set, **named},
        also_remove=changes.remove,
        restate=restated(storage, record, pinned.definition_mark),
    )
    of_view = properties_commit(world, node)
    publish_views(session, world, views or ())
    session.publish([commit] if of_view is None else [of_view, commit], world)
    message = choice.message or "the rows are the same"
    return Outcome(message=message, reused=True, tests=tests, details={**result_details(choice, None), **view_details(views or ())})
