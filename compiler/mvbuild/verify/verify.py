"""RunSession + MVs -> Verified: each storage compared, as a bag of rows, with the query at the snapshots that the last refresh read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, error, warning
from mvbuild.freshness.clock import columns_below
from mvbuild.freshness.leaves import inputs
from mvbuild.freshness.model import Reason
from mvbuild.freshness.observed import Pin
from mvbuild.graph.model import Graph, ModelNode
from mvbuild.names import TableIdentifier
from mvbuild.parse.clock_reads import with_values
from mvbuild.ports.catalog import CommitConflict
from mvbuild.ports.engine import QueryError, SnapshotGone
from mvbuild.ports.states import Schema
from mvbuild.refresh.recorded import Recorded, Unverifiable, recorded_state
from mvbuild.refresh.result import Started
from mvbuild.refresh.session import RunSession
from mvbuild.refresh.sql import SchemaPin, pinned_sql, pinned_table
from mvbuild.verify.bags import Sample, counts_sql, differences_sql, has_floats, ordered_sql
from mvbuild.verify.model import Checked, Difference, Verification, Verified
from mvbuild.verify.row_keys import unique_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """How to compare the rows."""

    sample: float | None = None
    seed: int = 0
    limit: int = 10
    """How many differing rows to return."""
    float_tolerance: float | None = None
    """Overrides the models' settings."""


def verify(session: RunSession, nodes: Sequence[ModelNode], check: Check, on_event: Callable[[Started | Checked], None]) -> Verification:
    """One MV after another. If one of them cannot be verified, that is reported, and the others continue."""
    began = session.clock.monotonic()
    done = []
    for index, node in enumerate(nodes, 1):
        on_event(Started(node=node.id, index=index, total=len(nodes)))
        done.append(_timed(session, node, check))
        on_event(Checked(result=done[-1], index=index, total=len(nodes)))
    seed = None if check.sample is None else check.seed
    return Verification(results=tuple(done), sample=check.sample, seed=seed, seconds=session.clock.monotonic() - began)


def doubts(graph: Graph, results: Sequence[Verified], *, named: bool) -> tuple[Diagnostic, ...]:
    """What could not be compared: an error for MVs that were named in the request, and a warning for others."""
    tell = error if named else warning
    found = []
    for one in results:
        model = graph.model(one.node).model
        if one.status == "unverifiable" and one.reason:
            found.append(tell("unverifiable", f"'{model.name}' cannot be verified: {one.reason.message}", model.file.line_span(1)))
        elif one.status == "error" and one.reason:
            found.append(error("query-failed", f"'{model.name}': {one.reason.message}", model.file.line_span(1)))
    return tuple(found)


def _timed(session: RunSession, node: ModelNode, check: Check) -> Verified:
    began = session.clock.monotonic()
    return replace(_one(session, node, check), seconds=session.clock.monotonic() - began)


def _one(session: RunSession, node: ModelNode, check: Check) -> Verified:
    try:
        return _compared(session, node, recorded_state(session.world, node), check)
    except Unverifiable as exc:
        return Verified(node=node.id, status="unverifiable", reason=exc.reason)
    except SnapshotGone as exc:
        return _failed(node, "unverifiable", "snapshot-expired", str(exc))
    except CommitConflict as exc:
        return _failed(node, "unverifiable", "changed-meanwhile", str(exc))
    except QueryError as exc:
        return _failed(node, "error", "query-failed", str(exc))


def _compared(session: RunSession, node: ModelNode, recorded: Recorded, check: Check) -> Verified:
    storage_sql, query_sql = _sides(session, recorded)
    schema = session.engine.prepare(query_sql).schema
    notes, differing = recorded.notes, _differing_columns(recorded.storage.schema, schema)
    if differing:
        reason = Reason(code="columns-differ", message=differing, effect="stale", table=node.storage)
        return Verified(node=node.id, status="different", reason=reason, notes=notes)
    tolerance = node.model.config.float_tolerance if check.float_tolerance is None else check.float_tolerance
    keys = sample_columns(session.world.graph, node, schema)
    sample = Sample(columns=keys, share=check.sample, seed=check.seed) if check.sample is not None and keys else None
    sql = differences_sql(storage_sql, query_sql, schema, tolerance=tolerance, sample=sample)
    extra, missing = session.engine.rows(counts_sql(sql, schema), 1).rows[0]
    same = Verified(node=node.id, status="same", notes=notes, sql=sql)
    if not extra and not missing:
        return same
    rows = _rows(session, ordered_sql(sql, schema), check.limit)
    columns = tuple(f["name"] for f in schema["fields"])
    return replace(same, status="different", missing=missing, extra=extra, columns=columns, rows=rows)


def _sides(session: RunSession, recorded: Recorded) -> tuple[str, str]:
    """The rows that are stored, and the rows that the refresh should have stored."""
    pins = {leaf: _as_read(p, recorded) for leaf, p in recorded.pins.items()}
    graph = session.world.graph
    query = pinned_sql(graph, recorded.query, recorded.reads, pins, _schema_pin(session, recorded))
    if recorded.clock:
        below = inputs(graph, recorded.query, recorded.reads)
        query = with_values(query, recorded.clock, columns_below(session.world, below))
    current = recorded.storage.current_snapshot_id
    assert current is not None, "there is a record"
    pin = Pin(table=recorded.storage, snapshot_id=current, ref=None, moves=True)
    return f"SELECT * FROM {pinned_table(pin, session.schema_pin)}", query.text


def _as_read(pin: Pin, recorded: Recorded) -> Pin:
    """With the schema that the refresh read as the table's current one."""
    own = pin.table.snapshots[pin.snapshot_id].schema_id if pin.table.uuid in recorded.own_schemas and not pin.is_empty else None
    return pin if own is None else replace(pin, table=replace(pin.table, current_schema_id=own))


def _schema_pin(session: RunSession, recorded: Recorded) -> SchemaPin:
    def pinned(found: Pin, /, *, own_schema: bool = False) -> TableIdentifier:
        return session.schema_pin(found, own_schema=own_schema or found.table.uuid in recorded.own_schemas)

    return pinned


def _differing_columns(stored: Schema, computed: Schema) -> str:
    """Names that only one side has. Types and order of columns do not matter."""
    has, wants = ({f["name"].lower(): f["name"] for f in schema["fields"]} for schema in (stored, computed))
    lacks, more = ([of[n] for n in of if n not in other] for of, other in ((wants, has), (has, wants)))
    parts = [f"it lacks {', '.join(lacks)}" if lacks else "", f"it also has {', '.join(more)}" if more else ""]
    differences = " and ".join(p for p in parts if p)
    return f"the columns of its storage differ from those of its query: {differences}" if differences else ""


def sample_columns(graph: Graph, node: ModelNode, schema: Schema) -> tuple[str, ...]:
    """The columns that identify rows for a sample: the column of a `unique` test, otherwise all without floats; none if all contain
    floats."""
    fit = [f["name"] for f in schema["fields"] if not has_floats(f["type"])]
    unique = unique_columns(graph, node.id)
    return tuple([name for name in fit if name.lower() in unique][:1] or fit)


def _rows(session: RunSession, sql: str, limit: int) -> tuple[Difference, ...]:
    found = session.engine.rows(sql, limit).rows if limit else ()
    return tuple(Difference(only_in="storage" if r[0] > 0 else "query", copies=abs(r[0]), row=tuple(r[1:])) for r in found)


def _failed(node: ModelNode, status: str, code: str, message: str) -> Verified:
    reason = Reason(code=code, message=message, effect="unknown", table=node.identifier)
    return Verified(node=node.id, status="error" if status == "error" else "unverifiable", reason=reason)
