"""Snapshots of a storage table -> what history shows about each refresh."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.formats import refresh_state
from mvbuild.ports.commits import TableCommit
from mvbuild.storage.history import (
    EXPECTED_BYTES,
    REASON,
    REFRESH_ID,
    ROWS_REMOVED,
    STRATEGY,
    PastRefresh,
    current_refresh_id,
    history,
    live_rows,
    next_refresh_id,
)
from unit.worlds import Shop, name, shop

STORAGE = name("main.daily__storage")


@pytest.fixture
def of(tmp_path: Path) -> Shop:
    made = shop(tmp_path)
    made.run("+daily")
    return made


def publish(of: Shop, *summaries: dict[str, str]) -> PastRefresh:
    """A refresh that makes a snapshot for each summary on a branch, the last one with its record."""
    before = of.table(str(STORAGE))
    assert before.current_snapshot is not None
    of.catalog.create_branch(before, "audit")
    record = {key: before.current_snapshot.summary[key] for key in (refresh_state.KEY,)}
    for at, summary in enumerate(summaries):
        number = str(next_refresh_id(before))
        last = {**record, REFRESH_ID: number, STRATEGY: "merge", **summary} if at == len(summaries) - 1 else {}
        of.catalog.append_snapshot(STORAGE, {"id": [1]}, branch="audit", operation="overwrite", summary={**summary, **last})
    written = of.table(str(STORAGE))
    commit = TableCommit(
        identifier=STORAGE,
        expect_uuid=written.uuid,
        expect_snapshot_id=written.current_snapshot_id,
        set_snapshot_id=written.refs["audit"],
        drop_branches=("audit",),
    )
    of.catalog.commit([commit])
    return history(of.table(str(STORAGE)))[-1]


def test_a_delete_and_an_append(of: Shop) -> None:
    past = publish(
        of,
        {"added-position-deletes": "12", "added-files-size": "400"},
        {"added-records": "3", "added-files-size": "1000", EXPECTED_BYTES: "2000", REASON: ""},
    )
    assert (past.refresh_id, past.rows_added, past.rows_removed, past.bytes_written) == (2, 3, 12, 1400)
    assert (past.strategy, past.reason, past.expected_bytes, past.is_current) == ("merge", "", 2000, True)


def test_rows_that_a_rewritten_file_carries_over_were_not_removed(of: Shop) -> None:
    past = publish(of, {"deleted-records": "100", "added-records": "88"}, {"added-records": "3"})
    assert (past.rows_added, past.rows_removed) == (3, 12)


def test_the_current_refresh_is_the_one_with_the_current_rows(of: Shop) -> None:
    first = of.table(str(STORAGE)).current_snapshot_id
    publish(of, {"added-records": "3"})
    assert current_refresh_id(of.table(str(STORAGE))) == 2
    compacted = of.catalog.append_snapshot(STORAGE, {"id": [1]}, operation="replace")  # by another program, without a record
    assert current_refresh_id(compacted) == 2
    rolled_back = TableCommit(
        identifier=STORAGE, expect_uuid=compacted.uuid, expect_snapshot_id=compacted.current_snapshot_id, set_snapshot_id=first
    )
    of.catalog.commit([rolled_back])
    storage = of.table(str(STORAGE))
    assert (current_refresh_id(storage), next_refresh_id(storage)) == (1, 3)
    assert [past.refresh_id for past in history(storage) if past.is_current] == [1]


def test_what_the_refresh_has_noted_counts(of: Shop) -> None:
    """The first of its snapshots may have expired."""
    assert publish(of, {"added-records": "3", ROWS_REMOVED: "12"}).rows_removed == 12


def test_rows_that_deletes_hide_are_not_there(of: Shop) -> None:
    past = publish(of, {"added-position-deletes": "2"}, {"added-records": "1", "total-records": "11", "total-position-deletes": "2"})
    assert live_rows(past.snapshot) == 9


def test_a_full_refresh_is_one_snapshot(of: Shop) -> None:
    past = publish(of, {"added-records": "30", "deleted-records": "20", "added-files-size": "70"})
    assert (past.rows_added, past.rows_removed, past.bytes_written) == (30, 20, 70)


def test_rows_that_were_hidden_before_an_overwrite_are_not_removed_by_it(of: Shop) -> None:
    past = publish(of, {"added-records": "30", "deleted-records": "20", "removed-position-deletes": "5"})
    assert (past.rows_added, past.rows_removed) == (30, 15)


def test_a_full_refresh_removes_the_rows_that_there_were(of: Shop) -> None:
    """Neither those that deletes hid, nor those of an incremental attempt on the same branch."""
    publish(of, {"added-records": "3", "total-records": "20", "total-position-deletes": "5"})
    past = publish(
        of, {"added-position-deletes": "9"}, {"added-records": "4"}, {"added-records": "7", "deleted-records": "24", STRATEGY: "full"}
    )
    assert (past.rows_added, past.rows_removed) == (7, 15)


def test_an_overwrite_that_noted_what_it_removed_is_not_counted_twice(of: Shop) -> None:
    past = publish(of, {"added-records": "1", "deleted-records": "12", ROWS_REMOVED: "12"})
    assert (past.rows_added, past.rows_removed) == (1, 12)


def test_a_compaction_changes_nothing(of: Shop) -> None:
    publish(of, {"added-position-deletes": "12"}, {"added-records": "3", "added-files-size": "10", REASON: "having"})
    of.catalog.append_snapshot(STORAGE, operation="replace", summary={"added-records": "50", "deleted-records": "50"})
    past = history(of.table(str(STORAGE)))[-1]
    assert (past.refresh_id, past.rows_added, past.rows_removed, past.bytes_written, past.reason) == (2, 3, 12, 10, "having")
