"""Published -> Outcome: what a refresh did, for the line of progress and for run_results.json."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mvbuild.graph.model import ModelNode
from mvbuild.incremental.choice import StrategyChoice
from mvbuild.ports.states import Snapshot
from mvbuild.refresh.auxiliary_views import WrittenView
from mvbuild.refresh.outcome import Outcome
from mvbuild.refresh.publish import Published
from mvbuild.refresh.result import count_rows
from mvbuild.refresh.write_outcome import WriteOutcome
from mvbuild.storage.history import bytes_written, live_rows, rows_removed


def outcome(published: Published) -> Outcome:
    """The outcome of a refresh that wrote rows."""
    staged, done = published.audited.staged, published.outcome
    prepared, before, rows = staged.prepared, staged.place.before, live_rows(staged.snapshot)
    node = prepared.pinned.node
    return Outcome(
        message=progress_text(node, staged.choice, done, rows, views=len(staged.views)),
        tests=published.audited.tests,
        sql="\n;\n".join((*_of_views(staged.views), *done.statements)) if done else prepared.sql,
        details={
            "storage_table": None if before.of_view else str(node.storage),
            "snapshot_id": staged.snapshot.snapshot_id,
            "view_version_id": prepared.record.view_version_id,
            "base_snapshots": {str(p.table.identifier): p.snapshot_id for p in prepared.pinned.pins.values()},
            "rows": rows,
            **result_details(staged.choice, done, published.snapshots, before.current_snapshot),
            **view_details(staged.views),
        },
    )


def _of_views(views: Sequence[WrittenView]) -> Iterator[str]:
    """The statements that brought auxiliary views up to date."""
    return (sql for one in views if one.outcome is not None for sql in one.outcome.statements)


def progress_text(node: ModelNode, choice: StrategyChoice, done: WriteOutcome | None, rows: int | None, *, views: int = 0) -> str:
    """For the line of progress: `merge: +3 -1, 1,888 rows`, `from 1 auxiliary view: +1 -0, 8 rows` or `full: not-cheaper, 1,888 rows`.
    `views`: how many auxiliary views the rows were computed from. By which strategy was not known when the refresh was planned."""
    counted = count_rows(rows) if rows is not None else ""
    if done is not None:
        by = f"from {views} auxiliary view{'s' * (views != 1)}" if views else choice.strategy
        how = f"{by}: +{'?' if done.added is None else f'{done.added:,}'} -{done.removed:,}"
    elif choice.code in _EXPECTED or node.model.config.refresh_policy == "full":
        how = ""
    else:
        how = f"{choice.strategy}: {choice.code}"
    return ", ".join(part for part in (how, counted) if part)


def view_details(views: Sequence[WrittenView]) -> dict[str, Any]:
    """For run_results.json: what was done to each auxiliary view."""
    if not views:
        return {}
    return {
        "auxiliary_views": [
            {
                "relation": str(one.named.name),
                "snapshot_id": one.named.snapshot_id,
                "strategy": one.choice.strategy,
                "reason": one.choice.code or None,
                "rows_added": one.outcome.added if one.outcome else None,
                "rows_removed": one.outcome.removed if one.outcome else None,
            }
            for one in views
        ]
    }


_EXPECTED = ("never-refreshed", "forced")
"""Why a refresh is full if there is no other reason."""


def result_details(
    choice: StrategyChoice, done: WriteOutcome | None, made: Sequence[Snapshot] = (), before: Snapshot | None = None
) -> dict[str, Any]:
    """For run_results.json: the strategy and its reason, what was expected of it, and what it did. `made`: the snapshots of the refresh,
    last one first, and `before` the one from which it started."""
    full_removed = rows_removed(made, before) if made else None
    return {
        "strategy": choice.strategy,
        "reason": choice.code or None,
        "reason_message": choice.message or None,
        "expected_bytes": choice.expected.bytes if choice.expected else None,
        "expected_rows": choice.expected.rows if choice.expected else None,
        "expected_seconds": round(choice.expected.seconds, 3) if choice.expected else None,
        "full_bytes": choice.full.bytes if choice.full else None,
        "full_rows": choice.full.rows if choice.full else None,
        "full_seconds": round(choice.full.seconds, 3) if choice.full else None,
        "changed_rows": sum(change.rows for change in choice.changes.values()) if choice.changes else None,
        "bytes_written": bytes_written(made),
        "rows_added": done.added if done else _added(made),
        "rows_removed": done.removed if done else full_removed,
    }


def _added(made: Sequence[Snapshot]) -> int | None:
    value = made[0].summary.get("added-records", "") if made else ""
    return int(value) if value.isdigit() else None
