"""edits of tables -> commits: sent, tried again while the edits still fit, looked up if the answer was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mvbuild.adapters.iceberg.remote_answers import LostAnswer, Outdated, is_lost, settled
from mvbuild.adapters.iceberg.remote_applied import moved_main, was_applied
from mvbuild.adapters.iceberg.remote_files import data_of, dump, full_name
from mvbuild.adapters.iceberg.updates import as_models
from mvbuild.dataclass import dataclass
from mvbuild.ports.catalog import AlreadyExists, CommitConflict

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as PyCatalog
    from pyiceberg.table import Table

    from mvbuild.adapters.iceberg.metadata import Raw
    from mvbuild.adapters.iceberg.publisher import Data
    from mvbuild.names import TableIdentifier

_READERS = 8
_One = TypeVar("_One")
_Other = TypeVar("_Other")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change of one table."""

    identifier: TableIdentifier
    make: Callable[[Raw, Data], Raw]
    """Raises CommitConflict if the table is not as expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedTable:
    """An edit, with the current table."""

    identifier: TableIdentifier
    table: Table
    old: Raw
    new: Raw


class Sender(Protocol):
    """How a kind of catalog accepts commits of tables."""

    @property
    def together(self) -> bool:
        """Whether it accepts several tables in one commit."""

    def send(self, steps: Sequence[EditedTable]) -> None:
        """Send a commit. Raises Outdated if a table has changed, LostAnswer if the outcome is unknown. Without `together` there is one
        step."""


class OneByOne:
    """Any catalog that PyIceberg knows."""

    together = False

    def __init__(self, catalog: PyCatalog) -> None:
        self._catalog = catalog

    def send(self, steps: Sequence[EditedTable]) -> None:
        from pyiceberg.exceptions import CommitFailedException, NoSuchTableError

        (step,) = steps
        try:
            self._catalog.commit_table(step.table, *as_models(step.old, step.new))
        except (CommitFailedException, NoSuchTableError) as error:
            raise Outdated(str(error)) from error
        except Exception as error:
            if not is_lost(error):
                raise
            raise LostAnswer(f"{type(error).__name__}: {error}") from error


def commit(edits: Sequence[Edit], load: Callable[[TableIdentifier], Table], sender: Sender) -> None:
    """Commit all of them or none, if the sender supports it."""
    asked: list[list[EditedTable]] = []

    def ask() -> bool:
        tables = in_parallel(load, (edit.identifier for edit in edits))
        steps = [_step(edit, table) for edit, table in zip(edits, tables, strict=True)]
        asked.append(steps)
        sender.send(steps)
        return True

    def made() -> bool | None:
        now = [dump(table) for table in in_parallel(load, (edit.identifier for edit in edits))]
        return True if any(_were_applied(steps, now) for steps in asked) else None

    settled(f"the commit of {', '.join(str(edit.identifier) for edit in edits)}", ask, made)


def rename(catalog: PyCatalog, identifier: TableIdentifier, to: TableIdentifier, uuid: str) -> Table:
    from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError

    def ask() -> Table:
        try:
            return catalog.rename_table(full_name(identifier), full_name(to))
        except TableAlreadyExistsError:
            raise AlreadyExists(f"{identifier} cannot be renamed: {to} already exists.") from None
        except NoSuchTableError:
            raise CommitConflict(f"Table {identifier} no longer exists.") from None
        except Exception as error:
            if not is_lost(error):
                raise
            raise LostAnswer(f"{type(error).__name__}: {error}") from error

    def made() -> Table | None:
        try:
            table = catalog.load_table(full_name(to))
        except NoSuchTableError:
            return None
        return table if str(table.metadata.table_uuid) == uuid else None

    return settled(f"the rename of {identifier}", ask, made)


def in_parallel(function: Callable[[_One], _Other], items: Iterable[_One]) -> list[_Other]:
    listed = list(items)
    if len(listed) < 2:
        return [function(item) for item in listed]
    with ThreadPoolExecutor(min(_READERS, len(listed))) as pool:
        return list(pool.map(function, listed))


def _step(edit: Edit, table: Table) -> EditedTable:
    old = dump(table)
    return EditedTable(identifier=edit.identifier, table=table, old=old, new=edit.make(old, data_of(table)))


def _were_applied(steps: Sequence[EditedTable], now: Sequence[Raw]) -> bool:
    pairs = list(zip(steps, now, strict=True))
    # They were one commit, and only those that moved `main` left a trace that can still be found.
    telling: list[Any] = [pair for pair in pairs if moved_main(pair[0].old, pair[0].new)] or pairs
    return all(was_applied(step.old, step.new, raw) for step, raw in telling)
