"""path of a Delta table -> TableState: its versions are the snapshots, and its log shows what each of them did. Needs `deltalake`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from mvbuild.adapters.iceberg.files import local_path
from mvbuild.adapters.sources.failures import source_errors
from mvbuild.ports.sources import SourceError
from mvbuild.ports.states import Partition, Schema, Snapshot, TableState

if TYPE_CHECKING:
    from pathlib import Path

    from mvbuild.ports.sources import SourceLocation

_COMMIT = re.compile(r"(\d{20})\.json\Z")
_OF_SPARK = ("fs.", "dfs.")
"""Options of Hadoop's file systems; all others are those of `deltalake`."""
_TYPES = {"short": "int", "byte": "int", "integer": "int", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}

Action = Mapping[str, Any]


def load(location: SourceLocation, properties: Mapping[str, str]) -> TableState | None:  # noqa: ARG001
    """The state, or None if the table does not exist. `deltalake` does not use the catalog's `properties`."""
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError
    except ModuleNotFoundError as exc:
        message = f"{location.identifier} is a Delta table, and the Python package '{exc.name}' that reads its log is not installed"
        raise SourceError(message, location.identifier, code="missing-package", help="pip install 'mvbuild[delta]'") from None
    path = location.identifier.name
    options = {key: value for key, value in location.options.items() if not key.startswith(_OF_SPARK)}
    with source_errors(location):
        try:
            table = DeltaTable(path, storage_options=options or None)
        except TableNotFoundError:
            return None
        log = _log(path, options)
        version, metadata = table.version(), table.metadata()
        times = _times(log, version)
        return TableState(
            identifier=location.identifier,
            type=location.type,
            uuid=str(metadata.id),
            location=path,
            metadata_location=f"{path}/_delta_log/{version:020}.json",
            format_version=table.protocol().min_reader_version,
            current_snapshot_id=version,
            current_schema_id=0,
            schemas={0: iceberg_schema(json.loads(table.schema().to_json()))},
            partition_by=tuple(Partition(column=column, transform="identity") for column in metadata.partition_columns),
            sort_by=(),
            snapshots=Versions(log, times),
            snapshot_log=tuple((at, number) for number, at in times.items()),
            refs={"main": version},
            branches=frozenset(("main",)),
            properties=metadata.configuration,
        )


class Log(Protocol):
    """The commit files of a table."""

    def commits(self) -> Mapping[int, int]:
        """Version -> modification time of its file in milliseconds."""

    def read(self, version: int) -> bytes:
        """A commit file; raises OSError if it is gone."""


class Versions(Mapping[int, Snapshot]):
    """Version -> Snapshot, read from the log on demand: usually only the current one is needed."""

    __slots__ = ("_log", "_times")

    def __init__(self, log: Log, times: Mapping[int, int]) -> None:
        self._log = log
        self._times = times

    def __getitem__(self, version: int) -> Snapshot:
        at = self._times[version]
        actions = self._actions(version)
        info: Mapping[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        told_at = info.get("inCommitTimestamp") or info.get("timestamp")
        return Snapshot(
            snapshot_id=version,
            parent_id=version - 1 if version else None,
            sequence_number=version,
            timestamp_ms=told_at if isinstance(told_at, int) else at,
            operation=self._operation(version, actions),
            schema_id=None,
            summary={"operation": str(info.get("operation", "")), "engine-name": str(info.get("engineInfo", ""))},
        )

    def __iter__(self) -> Iterator[int]:
        return iter(self._times)

    def __len__(self) -> int:
        return len(self._times)

    def __contains__(self, version: object) -> bool:
        return version in self._times

    def _actions(self, version: int) -> list[Action]:
        """The actions of a commit; none if its file cannot be read any more."""
        try:
            lines = self._log.read(version).splitlines()
            return [action for line in lines if line.strip() and isinstance(action := json.loads(line), dict)]
        except (OSError, ValueError):
            return []

    def _operation(self, version: int, actions: list[Action]) -> str:
        """Iceberg's operation for a commit. A commit that does not clearly keep the rows is an `overwrite`."""
        files = [(kind, action[kind]) for action in actions for kind in ("add", "remove") if kind in action]
        changed = [kind for kind, file in files if file.get("dataChange", True)]
        if changed:
            return "overwrite" if "remove" in changed else "append"
        layout = self._layout(version, actions)
        same_layout = layout is None or layout == self._layout_before(version)
        return "replace" if actions and same_layout else "overwrite"

    def _layout_before(self, version: int) -> tuple[str, ...] | None:
        for before in range(version - 1, -1, -1):
            actions = self._actions(before) if before in self._times else []
            if not actions:
                return None
            found = self._layout(before, actions)
            if found is not None:
                return found
        return None

    @staticmethod
    def _layout(version: int, actions: list[Action]) -> tuple[str, ...] | None:
        metadata = next((a["metaData"] for a in actions if "metaData" in a), None)
        if metadata is None:
            return None
        return (metadata.get("id", str(version)), metadata.get("schemaString", ""), *metadata.get("partitionColumns", ()))


def iceberg_schema(delta: Mapping[str, Any]) -> Schema:
    """Delta's schema JSON in Iceberg's form. Delta may not number columns, or number them freely: here the ids only keep them apart."""
    return {**_type(delta, count(1)), "schema-id": 0}


def _type(delta: Any, ids: Iterator[int]) -> Any:
    if isinstance(delta, str):
        return _TYPES.get(delta, delta)
    if delta["type"] == "struct":
        return {"type": "struct", "fields": [_field(field, ids) for field in delta["fields"]]}
    if delta["type"] == "array":
        element = {"element-id": next(ids), "element": _type(delta["elementType"], ids)}
        return {"type": "list", **element, "element-required": not delta["containsNull"]}
    key = {"key-id": next(ids), "key": _type(delta["keyType"], ids)}
    value = {"value-id": next(ids), "value": _type(delta["valueType"], ids)}
    return {"type": "map", **key, **value, "value-required": not delta["valueContainsNull"]}


def _field(delta: Mapping[str, Any], ids: Iterator[int]) -> dict[str, Any]:
    field = {"id": next(ids), "name": delta["name"], "required": not delta["nullable"], "type": _type(delta["type"], ids)}
    comment = (delta.get("metadata") or {}).get("comment")
    return {**field, "doc": comment} if comment else field


def _times(log: Log, current: int) -> dict[int, int]:
    """The time of each version up to the current one. As in Delta, a later version is never earlier."""
    times: dict[int, int] = {}
    last = 0
    for version, at in sorted(log.commits().items()):
        if version <= current:
            last = times[version] = max(at, last + 1)
    # The log may be cleaned up to a checkpoint of the current version.
    times.setdefault(current, last + 1)
    return times


def _log(path: str, options: Mapping[str, str]) -> Log:
    local = local_path(path)
    return _LocalLog(local / "_delta_log") if local is not None else _RemoteLog(path, options)


class _LocalLog:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def commits(self) -> Mapping[int, int]:
        found = ((match, file) for file in self._folder.iterdir() if (match := _COMMIT.match(file.name)))
        return {int(match[1]): file.stat().st_mtime_ns // 1_000_000 for match, file in found}

    def read(self, version: int) -> bytes:
        return (self._folder / f"{version:020}.json").read_bytes()


class _RemoteLog:
    """Reads through the store of `deltalake`, which has the options."""

    def __init__(self, path: str, options: Mapping[str, str]) -> None:
        from deltalake.fs import DeltaStorageHandler
        from pyarrow.fs import PyFileSystem  # type: ignore[import-untyped]

        self._files = PyFileSystem(DeltaStorageHandler(path, dict(options)))

    def commits(self) -> Mapping[int, int]:
        from pyarrow.fs import FileSelector

        listed = self._files.get_file_info(FileSelector("_delta_log", allow_not_found=True))
        found = ((match, info) for info in listed if (match := _COMMIT.match(info.base_name)))
        return {int(match[1]): info.mtime_ns // 1_000_000 for match, info in found}

    def read(self, version: int) -> bytes:
        with self._files.open_input_file(f"_delta_log/{version:020}.json") as file:
            content: bytes = file.read()
            return content
