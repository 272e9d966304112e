"""the result of a run -> its last lines: how many nodes and tests ended in which way, and what was renamed and dropped."""

from __future__ import annotations

from collections import Counter

from mvbuild.refresh.result import RunResult


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


def moved(result: RunResult) -> list[str]:
    """What a run renamed and dropped."""
    return [*(f"renamed {old} to {new}" for old, new in result.renamed), *(f"dropped {name}" for name in result.dropped)]
