"""`mvbuild plan`: what a run would do and why, without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from mvbuild.cli.options import ListCommand, Options, branch_option, env, project_options, selection_options
from mvbuild.cli.removed_objects import removed_object, removed_text, rename_object, rename_text
from mvbuild.serve.words import reason_text, refused_data, size

if TYPE_CHECKING:
    from mvbuild.formats.failed_tests import FailedTests
    from mvbuild.graph.model import Graph
    from mvbuild.incremental.choice import StrategyChoice
    from mvbuild.incremental.cost import Cost
    from mvbuild.plan.model import Plan, Step

_VERBS = {
    "load": "load seed",
    "create": "create view",
    "replace": "replace view",
    "refresh": "refresh",
    "redefine": "redefine",
    "alter": "alter",
    "convert": "convert",
    "record": "update record",
    "reuse": "reuse",
    "blocked": "blocked",
}
_COUNTED = {"load": ("seed", "load"), "create": ("view", "create"), "replace": ("view", "replace"), "record": ("record", "update")}
"""Action -> what is counted, where the count has a noun of its own, and what is done to it."""


@click.command("plan", cls=ListCommand)
@project_options
@branch_option
@selection_options
@click.option("-f", "--full-refresh", is_flag=True, envvar=env("FULL_REFRESH"), help="Plan as for `run --full-refresh`.")
@click.option("--against", metavar="REF_OR_MANIFEST", help="Compare with another version of the project, and report what the change means.")
@click.option("--output", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@click.option("-v", "--verbose", is_flag=True, help="Also list nodes that need nothing.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 3 if there is something to do.")
def command(
    options: Options,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    full_refresh: bool,
    against: str | None,
    output: str,
    verbose: bool,
    detailed_exitcode: bool,
) -> int:
    """Show what a run would do to each node, and why. With --against: what differs from another version of the project, a git ref or a
    manifest.json, and for whom."""
    from mvbuild import api
    from mvbuild.cli.output import report
    from mvbuild.lineage.check import column_findings

    if against is None and output == "markdown":
        raise click.UsageError("--output markdown is for reviews: use it with --against")
    if against is not None and full_refresh:
        raise click.UsageError("--against compares two versions: it cannot be combined with --full-refresh")
    graph = options.graph(is_kept=False)
    if against is not None:
        return _review(graph, against, select, exclude, output, detailed_exitcode=detailed_exitcode)
    code = report(column_findings(graph))
    planned = api.plan(graph, select=select, exclude=exclude, full_refresh=full_refresh)
    report(planned.warnings)
    click.echo(json.dumps(plan_object(planned), indent=2) if output == "json" else plan_text(planned, verbose=verbose))
    if code:
        return code
    if any(s.action == "blocked" for s in planned.steps):
        return 1
    return 3 if detailed_exitcode and (planned.changes or planned.renames) else 0


def _review(graph: Graph, against: str, select: tuple[str, ...], exclude: tuple[str, ...], output: str, *, detailed_exitcode: bool) -> int:
    from mvbuild import api
    from mvbuild.cli.output import report
    from mvbuild.lineage.check import column_findings
    from mvbuild.review.as_json import review_object
    from mvbuild.review.markdown import review_markdown
    from mvbuild.review.text import review_text

    found = api.review(graph, against, select=select, exclude=exclude)
    wrong = [d for d in column_findings(graph) if d.severity == "error"]
    report((*wrong, *found.warnings))
    if output == "json":
        click.echo(json.dumps(review_object(found), indent=2))
    else:
        click.echo(review_markdown(found, size).rstrip() if output == "markdown" else review_text(found, size))
    if wrong:
        return 2
    return 3 if detailed_exitcode and found.has_changes else 0


def plan_text(planned: Plan, *, verbose: bool, prune: bool = False) -> str:
    """A paragraph for each rename, each node that changes and each removed model, then a count."""
    # What is stale and stays so, because what it reads was not selected, is shown too.
    shown = [s for s in planned.steps if verbose or s.action != "reuse" or any(r.effect != "fresh" for r in s.reasons)]
    blocks = [*map(rename_text, planned.renames), *(_paragraph(planned, s) for s in shown)]
    blocks += [removed_text(item, prune=prune) for item in planned.removed]
    counts = {action: sum(s.action == action for s in planned.steps) for action in _VERBS}
    total = ", ".join(_counted(action, n) for action, n in counts.items() if n)
    total = ", ".join(t for t in (f"{len(planned.renames)} to rename" if planned.renames else "", total) if t)
    total = "; ".join(t for t in (total, f"{len(planned.removed)} removed" if planned.removed else "") if t)
    work = _total_text(planned)
    return "\n\n".join([*blocks, f"Plan: {total or 'nothing selected'}.{f' {work}' if work else ''}"])


def _counted(action: str, n: int) -> str:
    """`4 views to create`, `1 to refresh`."""
    if action == "blocked":
        return f"{n} blocked"
    if action not in _COUNTED:
        return f"{n} to {_VERBS[action]}"
    noun, verb = _COUNTED[action]
    return f"{n} {noun}{'s' * (n != 1)} to {verb}"


def plan_object(planned: Plan) -> dict[str, Any]:
    """The plan as JSON: {renames, steps: [{unique_id, relation, action, strategy, reason, expected, full, considered, depends_on, reasons,
    failed_tests, error}], removed, summary}."""
    from mvbuild.artifacts.run_results import failed_object, reason_object

    nodes = planned.world.graph.nodes
    steps = [
        {
            "unique_id": s.node,
            "relation": str(nodes[s.node].identifier),
            "action": s.action,
            **choice_object(s.strategy, s.choice),
            "depends_on": _upstream(planned, s),
            "reasons": [reason_object(r) for r in s.reasons],
            "failed_tests": failed_object(_failed(planned, s)),
            "error": s.diagnostic.message if s.diagnostic else None,
        }
        for s in planned.steps
    ]
    expected, full, known = _totals(planned)
    totals = {"expected": work_object(expected if known else None), "full": work_object(full if known else None)}
    summary = {**{action: sum(s.action == action for s in planned.steps) for action in _VERBS}, **totals}
    renames, removed = [rename_object(r) for r in planned.renames], [removed_object(i) for i in planned.removed]
    return {"renames": renames, "steps": steps, "removed": removed, "summary": summary}


def choice_object(strategy: str | None, choice: StrategyChoice | None) -> dict[str, Any]:
    """How an MV is refreshed, as JSON; all null if that is not decided yet, or nothing is refreshed."""
    from mvbuild.cli.auxiliary_views import views_object
    from mvbuild.diagnostics.render import location

    reason = {"code": choice.code or None, "message": choice.message or None, "at": location(choice.span)} if choice else None
    considered = [
        {
            "strategy": one.strategy,
            "code": one.code or None,
            "message": one.message or None,
            "at": location(one.span),
            "expected": work_object(one.work),
        }
        for one in (choice.considered if choice else ())
    ]
    return {
        "strategy": strategy,
        "reason": reason if choice and (choice.code or choice.message) else None,
        "expected": work_object(choice.expected if choice else None),
        "full": work_object(choice.full if choice else None),
        "considered": considered,
        "auxiliary_views": views_object(choice),
    }


def work_object(work: Cost | None) -> dict[str, int | float] | None:
    return {"bytes": work.bytes, "rows": work.rows, "seconds": round(work.seconds, 3)} if work else None


def seconds_text(choice: StrategyChoice) -> str:
    """`about 1.2s instead of 4.0s`, which a full refresh takes; empty if it is not known, or nothing is read."""
    return f"about {_seconds(choice.expected, choice.full)}" if choice.expected and choice.full else ""


def bytes_text(choice: StrategyChoice) -> str:
    """`1.2 MB instead of 340 MB`; empty if it is not known, or nothing is read."""
    return _bytes(choice.expected, choice.full) if choice.expected and choice.full else ""


def _seconds(expected: Cost, full: Cost) -> str:
    return _instead_of(f"{expected.seconds:.1f}s", f"{full.seconds:.1f}s", is_less=expected.seconds < full.seconds)


def _bytes(expected: Cost, full: Cost) -> str:
    return _instead_of(size(expected.bytes), size(full.bytes), is_less=expected.bytes < full.bytes)


def _instead_of(expected: str, full: str, *, is_less: bool) -> str:
    return f"{expected} instead of {full}" if is_less and expected != full else expected


def _totals(planned: Plan) -> tuple[Cost, Cost, bool]:
    """The known work of all refreshes, the work if they were full, and whether any is known."""
    from mvbuild.incremental.cost import Cost

    choices = [s.choice for s in planned.steps if s.action == "refresh" and s.choice and s.choice.expected and s.choice.full]
    nothing = Cost(bytes=0, rows=0)
    expected = sum((c.expected for c in choices if c.expected), nothing)
    return expected, sum((c.full for c in choices if c.full), nothing), bool(choices)


def _total_text(planned: Plan) -> str:
    """The known seconds and bytes of all refreshes."""
    expected, full, known = _totals(planned)
    if not known:
        return ""
    unknown = sum(s.action == "refresh" and (s.choice is None or s.choice.expected is None) for s in planned.steps)
    rest = f", and {unknown} refresh{'es' * (unknown != 1)} of unknown size" if unknown else ""
    return f"Takes about {_seconds(expected, full)} of processor time; reads and writes {_bytes(expected, full)}{rest}."


def _upstream(planned: Plan, step: Step) -> list[str]:
    """What this run writes first, if the strategy depends on it."""
    from mvbuild.freshness.leaves import node_inputs

    if step.action != "refresh" or step.strategy is not None:
        return []
    graph = planned.world.graph
    written = {s.node for s in planned.steps if s.action in ("load", "refresh", "redefine")}
    leaves = node_inputs(graph, graph.model(step.node)).leaves
    return [str(graph.nodes[id].identifier) for id in dict.fromkeys(leaf.node for leaf in leaves) if id in written]


def _how(planned: Plan, step: Step) -> str:
    """`merge, about 1.2s instead of 4.0s, 1.2 MB instead of 340 MB` or `depends on lake.mart.daily`."""
    upstream = _upstream(planned, step)
    if upstream:
        return f"depends on {', '.join(upstream)}"
    work = (seconds_text(step.choice), bytes_text(step.choice)) if step.choice and step.action == "refresh" else ()
    return ", ".join(part for part in (step.strategy or "", *work) if part)


def _paragraph(planned: Plan, step: Step) -> str:
    name = str(planned.world.graph.nodes[step.node].identifier)
    how = f" ({detail})" if (detail := _how(planned, step)) else ""
    lines = [f"{_VERBS[step.action]}{how}  {click.style(name, bold=True)}"]
    lines += [f"    error: {d.message} ({d.span})" if d.span else f"    error: {d.message}" for d in step.diagnostics]
    lines += [f"    {reason_text(r)}" for r in step.reasons]
    failed = _failed(planned, step)
    lines += [f"    tests-failed: {refused_data(failed)}"] if failed else []
    lines += _why_full(step)
    if step.choice is not None and step.choice.auxiliary is not None:
        from mvbuild.cli.auxiliary_views import views_text

        lines += [f"    {line}" for line in views_text(step.choice)]
    return "\n".join(lines)


def _failed(planned: Plan, step: Step) -> FailedTests | None:
    """The tests that failed before, for a step of an MV."""
    return planned.freshness[step.node].failed if step.node in planned.freshness else None


def _why_full(step: Step) -> list[str]:
    """Why a refresh is full, unless its reasons already say it, or why there is none."""
    choice = step.choice
    if choice is None or step.action not in ("refresh", "record") or not choice.message:
        return []
    if not choice.code:
        return [f"    {choice.strategy}: {choice.message}"]
    if any(choice.message == r.message for r in step.reasons):
        return []
    return [f"    full because {choice.code}: {choice.message}{f' ({choice.span})' if choice.span else ''}"]
