"""the result of a run -> its last lines: how many nodes and tests ended in which way, and what was saved, renamed and dropped."""

from __future__ import annotations

from collections import Counter

from mvbuild.refresh.result import RunResult
from mvbuild.serve.words import size


def done(result: RunResult) -> str:
    """`Done. PASS=1 WARN=0 ... TOTAL=1`."""
    numbers = counts(result)
    return "Done. " + " ".join(f"{k}={v}" for k, v in numbers.items()) + f" TOTAL={sum(numbers.values())}"


def counts(result: RunResult) -> dict[str, int]:
    """How many nodes and tests ended in which way, in dbt's words."""
    statuses = Counter(r.status for r in result.results)
    tests = Counter(t.status for t in result.all_tests)
    return {
        "PASS": statuses["success"] + tests["pass"],
        "WARN": tests["warn"],
        "ERROR": statuses["error"] + tests["fail"] + tests["error"],
        "SKIP": statuses["skipped"] + tests["skipped"],
        "NO-OP": 0,
        "REUSED": statuses["reused"],
    }


def saved(result: RunResult) -> str:
    """`Incremental refreshes saved about 3.2s of processor time, and 340 MB of reads and writes.`: estimates, compared with full refreshes.
    Empty if it is less than 0.1s."""
    details = [one.details for one in result.results]
    known = [one for one in details if one.get("full_seconds") is not None and one.get("expected_seconds") is not None]
    seconds = sum(one["full_seconds"] - one["expected_seconds"] for one in known)
    moved_bytes = sum(one["full_bytes"] - one["expected_bytes"] for one in known)
    if seconds < 0.1:
        return ""
    return f"Incremental refreshes saved about {seconds:.1f}s of processor time{_and_bytes(moved_bytes)}."


def _and_bytes(count: int) -> str:
    return f", and {size(count)} of reads and writes" if count > 0 else ""


def moved(result: RunResult) -> list[str]:
    """What a run renamed and dropped."""
    return [*(f"renamed {old} to {new}" for old, new in result.renamed), *(f"dropped {name}" for name in result.dropped)]
