"""`mvbuild status`: the freshness of every MV, with the snapshots that differ."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from mvbuild.cli.options import ListCommand, Options, branch_option, project_options, selection_options
from mvbuild.serve.words import duration, refused_data, utc

if TYPE_CHECKING:
    from mvbuild.freshness.model import Freshness, Reason
    from mvbuild.freshness.observed import World
    from mvbuild.graph.model import ModelNode


@click.command("status", cls=ListCommand)
@project_options
@branch_option
@selection_options
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(options: Options, select: tuple[str, ...], exclude: tuple[str, ...], output: str) -> int:
    """Show for every materialized view whether it is fresh and, if not, which snapshots differ."""
    from mvbuild import api
    from mvbuild.api.sessions import SystemClock
    from mvbuild.artifacts.run_results import failed_object, reason_object
    from mvbuild.cli.branch import warn_if_unknown
    from mvbuild.cli.output import report
    from mvbuild.selection.select import select as select_nodes
    from mvbuild.serve.words import reason_text

    graph = options.graph(is_kept=False)
    warn_if_unknown(graph)
    world, answers = api.status(graph)
    chosen, warnings = select_nodes(world.graph, select, exclude, lambda: {id: found.state for id, found in answers.items()})
    report(warnings)
    shown = [(world.graph.model(id), answer) for id, answer in answers.items() if id in chosen]
    if output == "json":
        objects = [
            {
                "unique_id": node.id,
                "relation": str(node.identifier),
                "storage_table": _storage_table(world, node),
                "state": answer.state,
                "refreshed_at": _refreshed_at(answer),
                "reasons": [reason_object(r) for r in answer.reasons],
                "failed_tests": failed_object(answer.failed),
            }
            for node, answer in shown
        ]
        click.echo(json.dumps(objects, indent=2))
        return 0
    now = SystemClock().now_ms()
    width = max((len(str(n.identifier)) for n, _ in shown), default=0)
    for node, answer in shown:
        state = click.style(f"{answer.state:<7}", fg={"fresh": "green", "stale": "yellow", "unknown": "red"}[answer.state])
        click.echo(f"{node.identifier!s:<{width}}  {state}  {_when(answer)}")
        for reason in answer.reasons:
            click.echo(f"    {reason_text(reason)}{_unseen(reason, now)}")
        if answer.failed:
            click.echo(f"    tests-failed: {refused_data(answer.failed)}")
    return 0


def _unseen(reason: Reason, now_ms: int) -> str:
    """How long there has been data that the MV has not seen, in addition to the difference of snapshot timestamps; it is the tighter
    bound."""
    return f", unseen for {duration(max(0, now_ms - reason.unseen_since_ms))}" if reason.unseen_since_ms is not None else ""


def _storage_table(world: World, node: ModelNode) -> str | None:
    """None for an MV in the metadata-file format, whose storage is not a table of the catalog."""
    from mvbuild.storage.format import is_embedded

    broken = world.observed.unreadable(node.identifier) and world.observed.table(node.storage) is None
    return None if broken or is_embedded(node, world.observed.table(node.storage)) else str(node.storage)


def _when(answer: Freshness) -> str:
    if any(r.code in ("metadata-unreadable", "record-unreadable") for r in answer.reasons):
        return "record unreadable"
    at = _refreshed_at(answer)
    if answer.was_refreshed:
        return f"refreshed {at or 'at an unknown time'}"
    return "never refreshed"


def _refreshed_at(answer: Freshness) -> str | None:
    return utc(answer.refreshed_ms) if answer.refreshed_ms else None
