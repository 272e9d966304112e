"""Review -> plain objects for programs."""

from __future__ import annotations

from typing import Any

from mvbuild.diagnostics.render import as_object, location
from mvbuild.incremental.cost import Cost
from mvbuild.review import words
from mvbuild.review.model import NodeChange, Refresh, Review


def review_object(review: Review) -> dict[str, Any]:
    """{against, changes, macros, vars, refreshes, unknown, lint, summary}."""
    expected, full, unknown = words.total(review)
    known = bool(full.bytes)
    return {
        "against": review.against,
        "changes": [_change(c) for c in review.changes],
        "macros": list(review.macros),
        "vars": list(review.vars),
        "refreshes": [_refresh(r) for r in review.refreshes],
        "unknown": review.unknown or None,
        "lint": None if review.lint is None else [as_object(d) for d in review.lint],
        "summary": {
            "changes": {kind: sum(c.kind == kind for c in review.changes) for kind in dict.fromkeys(c.kind for c in review.changes)},
            "refreshes": len(review.refreshes),
            "expected": _work(expected) if known else None,
            "full": _work(full) if known else None,
            "refreshes_of_unknown_size": unknown,
        },
    }


def _change(change: NodeChange) -> dict[str, Any]:
    return {
        "unique_id": change.id,
        "resource_type": change.resource_type,
        "name": change.name,
        "original_file_path": change.path,
        "change": change.what,
        "class": change.kind,
        "findings": [{"class": f.kind, "message": f.message, "columns": list(f.columns)} for f in change.findings],
        "configuration": [{"setting": s.name, "old": s.old, "new": s.new} for s in change.settings],
        "documentation": change.documented,
        "former_name": change.former or None,
        "because": list(change.because),
        "breaks": [
            {"column": b.column, "unique_id": b.consumer, "name": b.name, "certain": b.certain, "location": location(b.span)}
            for b in change.breaks
        ],
        "downstream": list(change.downstream),
    }


def _refresh(one: Refresh) -> dict[str, Any]:
    return {
        "unique_id": one.node,
        "relation": one.relation,
        "action": one.action,
        "strategy": one.strategy,
        "why": one.why,
        "expected": _work(one.expected) if one.expected else None,
        "full": _work(one.full) if one.full else None,
    }


def _work(work: Cost) -> dict[str, int]:
    return {"bytes": work.bytes, "rows": work.rows}
