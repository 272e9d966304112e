"""What an incremental refresh treats as the whole storage."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mvbuild.incremental.sizes import FEW, MANY
from mvbuild.ports.catalog import CatalogError, ChangeRefused
from mvbuild.ports.changes import ChangePart, FileGroup, ReadRows, TableChange
from mvbuild.ports.states import TableState
from mvbuild.refresh.few_rows import is_better_fetched, may_be_few
from mvbuild.refresh.incremental import _Writer, carried_out
from mvbuild.refresh.inputs import RefreshInputs
from mvbuild.refresh.write_outcome import NotIncremental
from mvbuild.storage.history import ROWS_REMOVED
from unit.worlds import Shop, base_table


@dataclass
class Wanted:
    """Inputs whose difference removes three rows and adds three, by statements of the engine."""

    before: TableState
    copies_by_position: bool = True
    written: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    relations: Mapping[str, str] = field(default_factory=dict)
    target: str = "lake.mart.m"
    rows_changed: int = 0
    node: str = "model.shop.m"
    # A clock moved: how many rows it lets in is unknown, so they are not fetched at once.
    choice: Any = field(default_factory=lambda: SimpleNamespace(changes={}, inputs=SimpleNamespace(moved={"current_date": "2026-11-24"})))
    difference: Any = field(
        default_factory=lambda: SimpleNamespace(
            is_empty=False, partitions=None, gone="gone", came="came", relations=[], ctes=(), removes=None, together=None
        )
    )

    @property
    def place(self) -> Any:
        return SimpleNamespace(before=self.before, table=self.before.identifier, branch="audit")

    @property
    def session(self) -> Any:
        written = self.written
        prepared = SimpleNamespace(
            overwrite=lambda *_, where: written.append(f"overwrite {where}"), append=lambda *_: written.append("append")
        )
        rows = SimpleNamespace(rows=((3, 3),))
        engine = SimpleNamespace(
            rows=lambda *_: rows,
            prepare=lambda _: prepared,
            call=lambda _: written.append("delete"),
            copies_by_position=self.copies_by_position,
        )
        return SimpleNamespace(engine=engine, on_stage=lambda *_: None)

    def bound_changes(self) -> bool:
        return True

    def cached(self, what: str, relation: object) -> str:
        return what


def _with_summary(table: TableState, summary: Mapping[str, str]) -> TableState:
    assert table.current_snapshot is not None
    snapshot = replace(table.current_snapshot, summary=summary)
    return replace(table, snapshots={snapshot.snapshot_id: snapshot})


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ({"total-records": "3"}, ["overwrite true"]),
        ({"total-records": "3", "total-position-deletes": "0"}, ["overwrite true"]),
        # The file that the delete was about is gone: all four rows are there.
        ({"total-records": "4", "total-position-deletes": "1"}, ["delete", "append"]),
        ({"total-records": "4", "total-position-deletes": "0"}, ["delete", "append"]),
        ({}, ["delete", "append"]),
    ],
)
def test_only_a_storage_of_which_every_row_goes_is_overwritten(tmp_path: Path, summary: dict[str, str], expected: list[str]) -> None:
    wanted = Wanted(_with_summary(base_table(Shop(tmp_path).catalog, "mart.m"), summary))
    writer = _Writer(wanted, {})  # type: ignore[arg-type]
    writer.write()
    assert wanted.written == expected


@pytest.mark.parametrize(
    ("mode", "copies_by_position", "expected"),
    [
        ("copy-on-write", True, ["delete", "append"]),
        ("copy-on-write", False, ["overwrite true", "append"]),
        ("merge-on-read", False, ["delete", "append"]),
    ],
)
def test_a_spark_that_cannot_copy_by_position_writes_what_remains(
    tmp_path: Path, mode: str, copies_by_position: bool, expected: list[str]
) -> None:
    table = _with_summary(base_table(Shop(tmp_path).catalog, "mart.m"), {"total-records": "4"})
    # mvbuild itself does not write this format.
    table = replace(table, properties={"write.delete.mode": mode}, format_version=3)
    wanted = Wanted(table, copies_by_position=copies_by_position)
    _Writer(wanted, {}).write()  # type: ignore[arg-type]
    assert wanted.written == expected
    (removing,) = (one for one in wanted.statements if "stored_at_0v" in one)
    assert removing.startswith("DELETE FROM" if expected == ["delete", "append"] else "INSERT INTO lake.mart.m REPLACE WHERE true")


@pytest.mark.parametrize(
    ("changed", "summary", "tried"),
    [
        (FEW, {"total-records": "1000000"}, True),
        (FEW + 1, {"total-records": "1000000"}, False),
        (FEW + 1, {"total-records": "5"}, True),
        (FEW + 1, {}, False),
        # What the last refresh changed.
        (FEW + 1, {"total-records": "1000000", "added-records": "20"}, True),
        (FEW + 1, {"total-records": "1000000", "added-records": "20", ROWS_REMOVED: "9000"}, False),
        (FEW + 1, {"total-records": "1000000", ROWS_REMOVED: "20"}, True),
        (FEW + 1, {"total-records": "1000000", "added-records": "1000000"}, False),
        (MANY + 1, {"total-records": "1000000", "added-records": "20"}, False),
    ],
)
def test_when_few_rows_are_expected(tmp_path: Path, changed: int, summary: dict[str, str], tried: bool) -> None:
    table = _with_summary(base_table(Shop(tmp_path).catalog, "mart.m"), summary)
    choice = SimpleNamespace(inputs=None)
    assert may_be_few(Wanted(table, choice=choice, rows_changed=changed)) == tried  # type: ignore[arg-type]


def test_rows_that_were_read_are_counted_and_those_of_rewritten_files_are_estimated() -> None:
    nothing: Any = None
    rewritten = FileGroup(files=1, rows=1_000_000, bytes=8_000_000)
    part = ChangePart(
        old=1,
        new=2,
        added=rewritten,
        removed=rewritten,
        altered=FileGroup(),
        only_deletes=True,
        had_deletes=False,
        deleted_rows=0,
        files=nothing,
    )
    change = TableChange(table=nothing, old=1, new=2, parts=(part,), manifests_read=1, manifest_bytes_read=1)
    choice: Any = SimpleNamespace(changes={0: change, 1: change})
    inputs = RefreshInputs(session=nothing, node="model.shop.m", choice=choice, place=nothing)
    expected = inputs.rows_changed // 2
    assert 0 < expected < 100_000
    inputs.read = {f"0 {side}": ReadRows(count=count, ranges={}, data=None) for side, count in (("plus", 3), ("minus", 4))}
    assert inputs.rows_changed == expected + 7


def test_few_rows_of_many_that_changed_are_fetched_if_this_process_can_write_them(tmp_path: Path) -> None:
    table = replace(base_table(Shop(tmp_path).catalog, "mart.m"), properties={"write.delete.mode": "merge-on-read"}, format_version=2)

    def is_fetched(table: TableState) -> bool:
        return is_better_fetched(Wanted(table))  # type: ignore[arg-type]

    assert is_fetched(table)
    assert not is_fetched(replace(table, format_version=3))
    assert not is_fetched(replace(table, properties={}))


@pytest.mark.parametrize(
    ("failure", "raised", "code"),
    [
        (CatalogError("EOF: read 1 bytes"), NotIncremental, "incremental-failed"),
        (ChangeRefused("files-missing", "a file is gone"), NotIncremental, "files-missing"),
        (CatalogError("no answer", unreachable=True), CatalogError, None),
    ],
)
def test_a_change_that_cannot_be_read(failure: CatalogError, raised: type[Exception], code: str | None) -> None:
    """A full refresh does not need it. Of a catalog that does not answer, it would need other things."""

    def read_changes() -> None:
        raise failure

    inputs: Any = SimpleNamespace(read_changes=read_changes, names=nullcontext)
    with pytest.raises(raised, match=str(failure)) as caught:
        carried_out(inputs, {})
    assert getattr(caught.value, "code", None) == code
