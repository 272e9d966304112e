"""`mvbuild plan`: what a run would do and why, without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from mvbuild.cli.leavings import removed_object, removed_text, rename_object, rename_text
from mvbuild.cli.options import ListCommand, Options, env, project_options, selection_options
from mvbuild.serve.words import duration

if TYPE_CHECKING:
    from mvbuild.freshness.model import Reason
    from mvbuild.plan.model import Plan, Step

_VERBS = {
    "load": "load seed",
    "create": "create view",
    "replace": "replace view",
    "refresh": "refresh",
    "redefine": "redefine",
    "alter": "alter",
    "convert": "convert",
    "record": "move record on",
    "reuse": "reuse",
    "blocked": "blocked",
}


@click.command("plan", cls=ListCommand)
@project_options
@selection_options
@click.option("-f", "--full-refresh", is_flag=True, envvar=env("FULL_REFRESH"), help="Plan as for `run --full-refresh`.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-v", "--verbose", is_flag=True, help="List the nodes that need nothing as well.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 3 if there is something to do.")
def command(
    options: Options,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    full_refresh: bool,
    output: str,
    verbose: bool,
    detailed_exitcode: bool,
) -> int:
    """Show what a run would do to each node, and exactly why."""
    from mvbuild import api
    from mvbuild.cli.output import report

    graph = options.graph()
    planned = api.plan(graph, select=select, exclude=exclude, full_refresh=full_refresh)
    report(planned.warnings)
    click.echo(json.dumps(plan_object(planned), indent=2) if output == "json" else plan_text(planned, verbose=verbose))
    if any(s.action == "blocked" for s in planned.steps):
        return 1
    return 3 if detailed_exitcode and (planned.changes or planned.renames) else 0


def plan_text(planned: Plan, *, verbose: bool, prune: bool = False) -> str:
    """A paragraph per rename, per node that changes and per removed model, then a count."""
    shown = [s for s in planned.steps if verbose or s.action != "reuse"]
    blocks = [*map(rename_text, planned.renames), *(_paragraph(planned, s) for s in shown)]
    blocks += [removed_text(item, prune=prune) for item in planned.removed]
    counts = {verb: sum(s.action == action for s in planned.steps) for action, verb in _VERBS.items()}
    total = ", ".join(f"{n} to {verb}" if verb != "blocked" else f"{n} blocked" for verb, n in counts.items() if n)
    total = ", ".join(t for t in (f"{len(planned.renames)} to rename" if planned.renames else "", total) if t)
    total += f"; {len(planned.removed)} removed" if planned.removed else ""
    return "\n\n".join([*blocks, f"Plan: {total or 'nothing selected'}."])


def plan_object(planned: Plan) -> dict[str, Any]:
    """The plan for programs: {renames, steps: [{unique_id, relation, action, strategy, reasons}], removed, summary}."""
    from mvbuild.artifacts.run_results import reason_object

    nodes = planned.world.graph.nodes
    steps = [
        {
            "unique_id": s.node,
            "relation": str(nodes[s.node].identifier),
            "action": s.action,
            "strategy": s.strategy,
            "reasons": [reason_object(r) for r in s.reasons],
            "error": s.diagnostic.message if s.diagnostic else None,
        }
        for s in planned.steps
    ]
    summary = {action: sum(s.action == action for s in planned.steps) for action in _VERBS}
    renames, removed = [rename_object(r) for r in planned.renames], [removed_object(i) for i in planned.removed]
    return {"renames": renames, "steps": steps, "removed": removed, "summary": summary}


def reason_text(reason: Reason) -> str:
    """`base-table-changed: lake.raw.orders has new data (snapshot 1 -> 2, 3m later)`."""
    facts = []
    if reason.recorded is not None and reason.current is not None:
        what = "version" if "view" in reason.code else "snapshot"
        facts.append(f"{what} {reason.recorded} -> {reason.current}")
    if reason.lag_ms is not None:
        facts.append(f"{duration(reason.lag_ms)} {'later' if reason.lag_ms >= 0 else 'earlier'}")
    return f"{reason.code}: {reason.message}" + (f" ({', '.join(facts)})" if facts else "")


def _paragraph(planned: Plan, step: Step) -> str:
    name = str(planned.world.graph.nodes[step.node].identifier)
    how = f" ({step.strategy})" if step.strategy else ""
    lines = [f"{_VERBS[step.action]}{how}  {click.style(name, bold=True)}"]
    if step.diagnostic:
        lines.append(
            f"    error: {step.diagnostic.message} ({step.diagnostic.span})"
            if step.diagnostic.span
            else f"    error: {step.diagnostic.message}"
        )
    lines += [f"    {reason_text(r)}" for r in step.reasons]
    return "\n".join(lines)
