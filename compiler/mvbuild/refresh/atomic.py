"""what a run built and tested + PendingCommits -> everything published in one commit, or nothing: the end of `run --atomic`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mvbuild.diagnostics import Diagnostic, ProjectError, error, warning
from mvbuild.graph.model import Graph
from mvbuild.ports.catalog import CatalogError, CommitConflict
from mvbuild.refresh.pending_commits import PendingCommits
from mvbuild.refresh.result import Message, RunResult

_NOT = "built and tested, but not published"
_EITHER = "Run `mvbuild status` to see whether everything or nothing was published. Then run again."
_HELP = "Nothing was published: every table and every record is as before the run."


def require_atomic(graph: Graph, is_atomic: bool) -> None:
    """Raise ProjectError if the catalog cannot change several tables in one commit. Called before anything else."""
    if not is_atomic:
        target = graph.project.target
        kind = target.catalog.get("type", "this")
        message = f"catalog '{target.catalog_name}' cannot publish several MVs in one commit: a {kind} catalog changes one table at a time"
        raise ProjectError([error("not-atomic", message, target.span)])


def publish_together(result: RunResult, pending: PendingCommits, on_event: Callable[[Message], None]) -> RunResult:
    """Errors of the catalog are in the result; they are not raised."""
    if not result.ok:
        pending.discard()
        failed = next((r.node for r in result.results if r.status == "error"), "a data test")
        found = _unpublished(result, f"{_NOT}: {failed} failed")
        built = sum(r.status == "success" for r in result.results)
        message = f"{built} node{'s' * (built != 1)} were built but not published, because {failed} failed"
        return replace(found, diagnostics=(*found.diagnostics, warning("not-published", message, help=_HELP))) if built else found
    if pending.is_empty:
        return result
    done = sum(r.status in ("success", "reused") for r in result.results)
    on_event(Message(message=f"publishing {done} nodes in one commit"))
    try:
        pending.commit()
    except CommitConflict as exc:
        return _unpublished(result, f"{_NOT}: the commit was refused", error("commit-conflict", str(exc), help=_HELP))
    except CatalogError as exc:
        code = "catalog-unreachable" if exc.unreachable else "catalog-error"
        return _unpublished(result, "built and tested; the commit failed, and its outcome is unknown", error(code, str(exc), help=_EITHER))
    return result


def _unpublished(result: RunResult, message: str, *diagnostics: Diagnostic) -> RunResult:
    results = tuple(replace(r, status="skipped", message=message) if r.status == "success" else r for r in result.results)
    return replace(result, results=results, diagnostics=(*result.diagnostics, *diagnostics))
