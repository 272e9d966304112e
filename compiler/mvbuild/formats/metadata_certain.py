"""JSON object of an MV metadata file that breaks a rule -> the certain part of it, which breaks none, and the rules that were broken.

mvbuild writes files by the rules, and reads others as far as possible. It leaves out what is not needed to read the rows, what is repeated
elsewhere in the file, and what only the freshness of the rows depends on: then there is no record of a refresh, and the MV is stale. If two
parts of the file contradict each other about the definition, the columns or the rows, nothing is certain, and the file is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.formats import metadata_check, metadata_rules
from mvbuild.formats.base_tables import split_parts
from mvbuild.formats.metadata_fields import FILE, REFRESH, REFRESH_START, SNAPSHOT, VERSION
from mvbuild.formats.metadata_rules import NO_REFRESH, SKEW_MS
from mvbuild.formats.properties import CHILD_VIEW_VERSION
from mvbuild.formats.record import RecordError
from mvbuild.formats.shapes import ListOf, MapOf, Shape

Raw = dict[str, Any]
_FIELDS = {one.name: one.shape for one in FILE.fields}


@dataclass(kw_only=True)
class _Reading:
    """The file as far as it was read. Its own objects are never changed; new ones replace them."""

    raw: Raw
    problems: list[RecordError] = field(default_factory=list)
    has_record: bool = True
    """Whether it is certain what the current refresh read."""

    def broken(self, path: str, rule: str) -> None:
        self.problems.append(RecordError(path, rule))

    def fits(self, path: str, value: object, shape: Shape) -> bool:
        try:
            metadata_check.check(path, value, shape)
        except RecordError as problem:
            self.problems.append(problem)
            return False
        return True

    def ids(self, listed: str, name: str) -> set[Any]:
        return {entry[name] for entry in self.raw.get(listed) or ()}


def certain(raw: Mapping[str, Any]) -> tuple[Raw, tuple[RecordError, ...]]:
    """The same file and no problem if nothing in it can be read with certainty."""
    reading = _Reading(raw=dict(raw))
    try:
        for step in _STEPS:
            step(reading)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError):
        # A part has the wrong type, which the check of the whole file reports.
        return dict(raw), ()
    return reading.raw, tuple(reading.problems)


# --- what nothing depends on -----------------------------------------------------------------------------------------------------


def _properties(reading: _Reading) -> None:
    properties = reading.raw.get("properties")
    if properties is None:
        return
    kept: dict[str, str] = {}
    for name, value in properties.items():
        text = value if isinstance(value, str) else _scalar(value)
        if text is None or text != value:
            reading.broken(f"properties.{name}", "must be a string")
        if text is not None:
            kept[name] = text
        elif name.startswith(CHILD_VIEW_VERSION):
            reading.has_record = False
    of_record = _FIELDS["properties"]
    assert isinstance(of_record, MapOf)
    for name in [n for n in kept if n.startswith((CHILD_VIEW_VERSION, REFRESH_START))]:
        if not reading.fits("properties", {name: kept[name]}, of_record):
            del kept[name]
            reading.has_record = reading.has_record and not name.startswith(CHILD_VIEW_VERSION)
    reading.raw["properties"] = kept


def _scalar(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else None


def _metadata_log(reading: _Reading) -> None:
    log = reading.raw.get("metadata-log")
    if log is not None and not (reading.fits("metadata-log", log, _FIELDS["metadata-log"]) and _in_order(reading, "metadata-log", log)):
        reading.raw["metadata-log"] = []


def _statistics(reading: _Reading) -> None:
    listed = reading.raw.get("statistics")
    if listed is None:
        return
    if not reading.fits("statistics", listed, _FIELDS["statistics"]):
        reading.raw["statistics"] = []
        return
    known = reading.ids("snapshots", "snapshot-id")
    reading.raw["statistics"] = [
        entry for at, entry in enumerate(listed) if _is_known(reading, f"statistics[{at}].snapshot-id", entry["snapshot-id"], known)
    ]


def _identifier_fields(reading: _Reading) -> None:
    schemas = []
    for at, schema in enumerate(reading.raw["schemas"]):
        wanted = schema.get("identifier-field-ids")
        known = {id for _, id in metadata_rules.field_ids(schema)}
        path = f"schemas[{at}].identifier-field-ids"
        if wanted is not None and not (isinstance(wanted, list) and all(_is_known(reading, path, id, known) for id in wanted)):
            schema = {name: value for name, value in schema.items() if name != "identifier-field-ids"}
        schemas.append(schema)
    reading.raw["schemas"] = schemas


def _sort_orders(reading: _Reading) -> None:
    """Rows are read without sort orders."""
    orders: Any = reading.raw.get("sort-orders")
    default = reading.raw.get("default-sort-order-id")
    columns = {id for schema in reading.raw["schemas"] for _, id in metadata_rules.field_ids(schema)}
    listed = _FIELDS["sort-orders"]
    assert isinstance(listed, ListOf)
    right = isinstance(orders, list) and bool(orders) and reading.fits("sort-orders", orders, listed)
    if right:
        sources = [(at, f["source-id"]) for at, order in enumerate(orders) for f in order["fields"]]
        right = all(_is_known(reading, f"sort-orders[{at}].fields", id, columns) for at, id in sources)
    if not right or not _is_known(reading, "default-sort-order-id", default, {order["order-id"] for order in orders}):
        if not orders:
            reading.broken("sort-orders", "is missing" if orders is None else "must not be empty")
        reading.raw |= {"sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0}


def _default_spec(reading: _Reading) -> None:
    """Rows are read with the specs that their files name; the default spec is for writers."""
    known = reading.ids("partition-specs", "spec-id")
    if not _is_known(reading, "default-spec-id", reading.raw.get("default-spec-id"), known):
        reading.raw["default-spec-id"] = max(known)


def _counters(reading: _Reading) -> None:
    """Numbers that were assigned must never be assigned again; a counter that is too low is raised."""
    raw = reading.raw
    columns = [id for schema in raw["schemas"] for _, id in metadata_rules.field_ids(schema)]
    fields = [f["field-id"] for spec in raw["partition-specs"] for f in spec["fields"]]
    numbers = [snapshot["sequence-number"] for snapshot in raw.get("snapshots") or ()]
    for name, given in (("last-column-id", columns), ("last-partition-id", fields), ("last-sequence-number", numbers)):
        least = max(given, default=0)
        if metadata_check.is_integer(raw.get(name)) and raw[name] < least:
            reading.broken(name, f"{raw[name]} is less than {least}, which is in use")
            raw[name] = least


# --- definition ------------------------------------------------------------------------------------------------------------------


def _versions(reading: _Reading) -> None:
    """Remove older versions that are broken. The current version, and any that may become current, must be valid."""
    current, schemas = reading.raw["current_version_id"], reading.ids("schemas", "schema-id")
    kept = []
    for at, version in enumerate(reading.raw["versions"]):
        version = _version(reading, f"versions[{at}]", version)
        id, path = version["version-id"], f"versions[{at}].schema-id"
        is_older = metadata_check.is_integer(id) and id < current
        if is_older and not (reading.fits(f"versions[{at}]", version, VERSION) and _is_known(reading, path, version["schema-id"], schemas)):
            continue
        kept.append(version)
    reading.raw["versions"] = kept


def _version(reading: _Reading, path: str, version: Raw) -> Raw:
    """A version without errors beside its SQL for Spark."""
    for name in ("summary", "storage-table"):
        shape = next(one.shape for one in VERSION.fields if one.name == name)
        wrong = name == "summary" if version.get(name) is None else not reading.fits(f"{path}.{name}", version[name], shape)
        if wrong:
            if version.get(name) is None:
                reading.broken(f"{path}.{name}", "is missing")
            version = {key: value for key, value in version.items() if key != name} | ({"summary": {}} if name == "summary" else {})
    texts: dict[Any, list[Any]] = {}
    for text in version["representations"]:
        texts.setdefault(text.get("dialect"), []).append(text)
    one = next(one.shape for one in VERSION.fields if one.name == "representations")
    assert isinstance(one, ListOf)
    kept = []
    for dialect, same in texts.items():
        is_one = all(text == same[0] for text in same)
        if len(same) > 1:
            reading.broken(f"{path}.representations", f"dialect {dialect!r} has several texts")
        if (
            not isinstance(dialect, str)
            or dialect.lower() == "spark"
            or (is_one and reading.fits(f"{path}.representations", same[0], one.of))
        ):
            kept += same[:1] if is_one else same
    return {**version, "representations": kept}


def _version_log(reading: _Reading) -> None:
    """`current_version_id` decides which version is current; only a log that ends with another one contradicts it."""
    raw, current = reading.raw, reading.raw["current_version_id"]
    known = reading.ids("versions", "version-id")
    log = raw.get("version_log")
    entry = _FIELDS["version_log"]
    assert isinstance(entry, ListOf)
    if isinstance(log, list) and log and isinstance(log[-1], Mapping) and log[-1].get("version-id", current) != current:
        return
    found = []
    for at, one in enumerate(log if isinstance(log, list) else ()):
        path = f"version_log[{at}]"
        if reading.fits(path, one, entry.of) and _is_known(reading, f"{path}.version-id", one["version-id"], known):
            found.append(one)
    if not found or found[-1]["version-id"] != current or not _in_order(reading, "version_log", found):
        if not log:
            reading.broken("version_log", "is missing" if log is None else "must not be empty")
        version = {v["version-id"]: v for v in raw["versions"]}[current]
        found = [{"timestamp-ms": min(version["timestamp-ms"], raw["last-updated-ms"]), "version-id": current}]
    raw["version_log"] = found


# --- rows ------------------------------------------------------------------------------------------------------------------------


def _snapshots(reading: _Reading) -> None:
    """A snapshot without an operation counts as one that changed rows."""
    summary = next(one.shape for one in SNAPSHOT.fields if one.name == "summary")
    found = []
    for at, snapshot in enumerate(reading.raw.get("snapshots") or ()):
        if not reading.fits(f"snapshots[{at}].summary", snapshot.get("summary"), summary):
            summary = snapshot.get("summary")
            texts = {k: v for k, v in summary.items() if isinstance(v, str)} if isinstance(summary, Mapping) else {}
            operation = texts.get("operation")
            known = operation if operation in ("append", "replace", "overwrite", "delete") else "overwrite"
            snapshot = {**snapshot, "summary": {**texts, "operation": known}}
        found.append(snapshot)
    if "snapshots" in reading.raw:
        reading.raw["snapshots"] = found


def _refs(reading: _Reading) -> None:
    """Remove branches and tags without a snapshot. `main` always exists, at the current snapshot; a different `main` is a contradiction."""
    raw, current = reading.raw, metadata_rules.current_snapshot_id(reading.raw)
    known, shape = reading.ids("snapshots", "snapshot-id"), _FIELDS["refs"]
    assert isinstance(shape, MapOf)
    refs = raw.get("refs")
    if refs is None:
        return
    if not isinstance(refs, Mapping):
        reading.broken("refs", "must be a JSON object")
        refs = {}
    kept: Raw = {}
    for name, ref in refs.items():
        if name == "main" and isinstance(ref, Mapping) and ref.get("snapshot-id") != current:
            return
        if not reading.fits(f"refs.{name}", ref, shape.of) or not _is_known(reading, f"refs.{name}.snapshot-id", ref["snapshot-id"], known):
            continue
        kept[name] = ref
    if "main" in kept and kept["main"]["type"] != "branch":
        reading.broken("refs.main.type", "must be 'branch'")
        del kept["main"]
    if current is not None and "main" not in kept:
        if "main" not in refs:
            reading.broken("refs.main", f"is missing beside the current-snapshot-id, {current}")
        kept = {"main": {"type": "branch", "snapshot-id": current}, **kept}
    raw["refs"] = kept


def _snapshot_log(reading: _Reading) -> None:
    """Only a log without gaps shows which snapshot was current at a time, so entries before a gap are removed."""
    raw, current = reading.raw, metadata_rules.current_snapshot_id(reading.raw)
    log, shape = raw.get("snapshot-log"), _FIELDS["snapshot-log"]
    assert isinstance(shape, ListOf)
    if log is None:
        return
    if not isinstance(log, list):
        reading.broken("snapshot-log", "must be a list")
        log = []
    known, begin = reading.ids("snapshots", "snapshot-id"), 0
    for at, entry in enumerate(log):
        path = f"snapshot-log[{at}]"
        if not reading.fits(path, entry, shape.of) or not _is_known(reading, f"{path}.snapshot-id", entry["snapshot-id"], known):
            begin = at + 1
    kept = log[begin:]
    if kept and kept[-1]["snapshot-id"] != current:
        main = (raw.get("refs") or {}).get("main", {}).get("snapshot-id", current)
        if main != current:
            return
        shown = "none" if current is None else current
        reading.broken(f"snapshot-log[{len(log) - 1}].snapshot-id", f"{kept[-1]['snapshot-id']} is not the current-snapshot-id, {shown}")
        kept = []
    raw["snapshot-log"] = kept if _in_order(reading, "snapshot-log", kept) else []


# --- the record of the rows ------------------------------------------------------------------------------------------------------


def _refreshes(reading: _Reading) -> None:
    """Remove refreshes that are not certain; without the current one, the file does not show what its rows were made from."""
    raw, listed = reading.raw, reading.raw.get("refreshes")
    if not isinstance(listed, list):
        reading.broken("refreshes", "is missing" if listed is None else "must be a list")
        listed = []
    current = raw.get("current-refresh-id")
    kept: dict[int, Raw] = {}
    twice: set[int] = set()
    for at, refresh in enumerate(listed):
        is_current = isinstance(refresh, Mapping) and refresh.get("refresh-id") == current
        refresh = _refresh(reading, refresh, f"refreshes[{at}]", is_current=is_current)
        if refresh is None:
            continue
        id = refresh["refresh-id"]
        if id in kept and kept[id] != refresh:
            reading.broken(f"refreshes[{at}].refresh-id", f"{id} has several refreshes")
            twice.add(id)
        kept[id] = refresh
    raw["refreshes"] = [refresh for id, refresh in kept.items() if id not in twice]
    known = reading.ids("refreshes", "refresh-id")
    if current == NO_REFRESH and not listed:
        return
    if not reading.has_record or not _is_known(reading, "current-refresh-id", current, known):
        raw["current-refresh-id"] = NO_REFRESH


def _refresh(reading: _Reading, refresh: Any, path: str, *, is_current: bool) -> Raw | None:
    if not reading.fits(path, refresh, REFRESH):
        return None
    try:
        metadata_rules.check_refresh(reading.raw, refresh, path, is_current=is_current)
    except RecordError as problem:
        reading.problems.append(problem)
        return None
    tables = _by_identifier(reading, refresh["base-tables"], f"{path}.base-tables")
    return None if tables is None else {**refresh, "base-tables": tables}


def _by_identifier(reading: _Reading, tables: Mapping[str, Any], path: str) -> Raw | None:
    """A key that is not the identifier does no harm if it is a part of it, or if the table's UUID identifies the table."""
    found: Raw = {}
    for key, table in tables.items():
        identifier, properties = table["identifier"], table.get("properties") or {}
        if key != identifier:
            reading.broken(f"{path}.{key}.identifier", f"{identifier!r} is not its key in base-tables, {key!r}")
            if not (properties.get("uuid") or _is_part(key, identifier) or _is_part(identifier, key)):
                return None
        if found.setdefault(identifier, table) != table:
            reading.broken(f"{path}.{key}.identifier", f"{identifier!r} is in base-tables with several states")
            return None
    return found


def _is_part(short: str, long: str) -> bool:
    """`raw.orders` of `lake.raw.orders`, in any case and with any quotes."""
    one, other = ([part.lower() for part in split_parts(text)] for text in (short, long))
    return len(one) > 0 and other[len(other) - len(one) :] == one


# --- rules that several parts share ----------------------------------------------------------------------------------------------


def _is_known(reading: _Reading, path: str, wanted: object, known: set[Any]) -> bool:
    if metadata_check.is_integer(wanted) and wanted in known:
        return True
    reading.broken(path, f"{wanted!r} is not in the file")
    return False


def _in_order(reading: _Reading, name: str, log: Sequence[Mapping[str, Any]]) -> bool:
    times = [entry["timestamp-ms"] for entry in log]
    last = [*times, reading.raw["last-updated-ms"]]
    at = next((at for at, (before, after) in enumerate(zip(times, last[1:], strict=True)) if after < before - SKEW_MS), None)
    if at is None:
        return True
    reading.broken(f"{name}[{at}].timestamp-ms", f"{times[at]} is later than what comes after it, {last[at + 1]}")
    return False


_STEPS: tuple[Callable[[_Reading], None], ...] = (
    _properties,
    _identifier_fields,
    _sort_orders,
    _default_spec,
    _snapshots,
    _counters,
    _versions,
    _version_log,
    _refs,
    _snapshot_log,
    _metadata_log,
    _statistics,
    _refreshes,
)
