"""Content + node -> what its page says of refreshes: freshness, what comes next, history, record, storage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mvbuild.diagnostics import ProjectError
from mvbuild.formats.record import NO_SNAPSHOT, RefreshRecord
from mvbuild.freshness.model import Freshness
from mvbuild.freshness.observed import World
from mvbuild.graph.model import ModelNode, Node
from mvbuild.incremental.choice import StrategyChoice
from mvbuild.incremental.reasons import CODES
from mvbuild.plan.explain import Explanation, Verdict, explain_step, verdicts_of
from mvbuild.ports.states import TableState
from mvbuild.refresh.recording import described
from mvbuild.serve.words import reason_text
from mvbuild.site.model import Content, Seen
from mvbuild.storage.history import PastRefresh, history, live_rows

EXPLAINED = 2_000
"""The largest number of models whose pages also show how their queries follow supposed changes: each takes about 10 ms."""


def upkeep(content: Content, node: Node) -> dict[str, Any]:
    """Empty if the catalog was not read, or does not have the node."""
    seen = content.seen
    if seen is None:
        return {}
    if not isinstance(node, ModelNode) or node.storage is None:
        table = seen.world.observed.table(node.identifier)
        return {"stored": _stored(table)} if table is not None else {}
    answer, storage = seen.freshness.get(node.id), seen.world.observed.table(node.storage)
    if answer is None:
        return {}
    return {
        "freshness": freshness(answer),
        "next": _next(content, seen, node),
        "history": [_past(seen.world, node, one) for one in history(storage)] if storage is not None else [],
        "record": _record(described(seen.world, node, answer.record)) if answer.record is not None else None,
        "stored": _stored(storage) if storage is not None else None,
    }


def freshness(answer: Freshness) -> dict[str, Any]:
    """The freshness of an MV as pages show it; `live.json` has the same."""
    failed = answer.failed
    return {
        "state": answer.state,
        "refreshed": answer.record.refresh_start_ms if answer.record else None,
        "reasons": [
            {"code": r.code, "text": reason_text(r).partition(": ")[2], "effect": r.effect, "unseen": r.unseen_since_ms}
            for r in answer.reasons
        ],
        "failed": {"at": failed.at_ms, "tests": list(failed.tests)} if failed else None,
    }


def live(answers: Mapping[str, Freshness], at_ms: int) -> dict[str, Any]:
    """The content of `live.json`, which served pages poll: node -> its current freshness."""
    return {"at": at_ms, "error": None, "nodes": {id: freshness(answer) for id, answer in answers.items()}}


def _next(content: Content, seen: Seen, node: ModelNode) -> dict[str, Any] | None:
    """What a run would do to an MV, and which strategy could follow changes."""
    step = content.steps.get(node.id)
    if step is None or seen.plan is None:
        return None
    found: dict[str, Any] = {"action": step.action, "strategy": step.strategy, "reasons": [reason_text(r) for r in step.reasons]}
    if step.diagnostic is not None:
        found["error"] = step.diagnostic.message
    if step.choice is not None:
        found |= _choice(step.choice)
    if len(content.steps) > EXPLAINED:
        return found | {"brief": True}
    try:
        return found | _explained(explain_step(seen.plan, step, seen.changes))
    except ProjectError as exc:
        return found | {"unknown": exc.diagnostics[0].message}


def _choice(choice: StrategyChoice) -> dict[str, Any]:
    return {
        "code": choice.code,
        "message": choice.message,
        "expected": [choice.expected.bytes, choice.expected.rows] if choice.expected else None,
        "full": [choice.full.bytes, choice.full.rows] if choice.full else None,
        "verdicts": [_verdict(one) for one in verdicts_of(choice)],
    }


def _explained(explanation: Explanation) -> dict[str, Any]:
    return {
        "unknown": explanation.untold[0] if explanation.untold else None,
        "operators": [[one.depth, one.text] for one in explanation.tree],
        "changes": [[one.name, one.what] for one in explanation.tables],
        "supposed": {one.change: [_verdict(v) for v in one.verdicts] for one in explanation.supposed},
    }


def _verdict(one: Verdict) -> dict[str, Any]:
    return {
        "strategy": one.strategy,
        "possible": one.is_possible,
        "chosen": one.is_chosen,
        "code": one.code,
        "message": one.message,
        "help": CODES[one.code][1] if one.code in CODES and not one.is_possible else "",
        "keys": list(one.keys),
        "bytes": one.work.bytes if one.work else None,
    }


def _past(world: World, node: ModelNode, past: PastRefresh) -> dict[str, Any]:
    return {
        "id": past.refresh_id,
        "at": past.at_ms,
        "strategy": past.strategy or None,
        "reason": past.reason or None,
        "why": CODES[past.reason][0] if past.reason in CODES else None,
        "added": past.rows_added,
        "removed": past.rows_removed,
        "seconds": past.seconds,
        "written": past.bytes_written,
        "expected": past.expected_bytes,
        "full": past.full_bytes,
        "current": past.is_current,
        "record": _record(described(world, node, past.record)),
    }


def _record(record: RefreshRecord) -> dict[str, Any]:
    """Snapshot ids are text: JavaScript cannot represent integers of that size."""
    return {
        "view_version": record.view_version_id,
        "tables": [
            {
                "name": ".".join((*t.namespace, t.name)) or t.uuid,
                "uuid": t.uuid or None,
                "type": t.type,
                "snapshot": None if t.snapshot_id == NO_SNAPSHOT else str(t.snapshot_id),
                "ref": t.ref,
            }
            for t in record.base_tables
        ],
        "views": [{"name": ".".join((*v.namespace, v.name)), "uuid": v.uuid, "version": v.version_id} for v in record.child_views],
        "started": record.refresh_start_ms,
    }


def _stored(table: TableState) -> dict[str, Any]:
    snapshot = table.current_snapshot
    size = snapshot.summary.get("total-files-size", "") if snapshot else ""
    return {
        "table": str(table.identifier),
        "uuid": table.uuid,
        "location": table.location,
        "metadata": table.metadata_location,
        "format": table.format_version,
        "type": table.type,
        "embedded": table.of_view is not None,
        "snapshot": str(snapshot.snapshot_id) if snapshot else None,
        "at": snapshot.timestamp_ms if snapshot else None,
        "rows": live_rows(snapshot) if snapshot else None,
        "bytes": int(size) if size.isdigit() else None,
        "partition_by": [f"{p.transform}({p.column})" if p.transform != "identity" else p.column for p in table.partition_by],
        "sort_by": [s.column for s in table.sort_by],
    }
