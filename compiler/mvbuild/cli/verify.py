"""`mvbuild verify [MV...]`: compare the storage with the query at the recorded snapshots."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from mvbuild.cli.options import ListCommand, Options, branch_option, project_options, selection_options
from mvbuild.cli.proposals import names

if TYPE_CHECKING:
    from mvbuild.api.sessions import Event
    from mvbuild.freshness.model import Reason
    from mvbuild.graph.model import Graph
    from mvbuild.verify.model import Verification, Verified


@click.command("verify", cls=ListCommand)
@click.argument("mv", nargs=-1, shell_complete=names)
@project_options
@branch_option
@selection_options
@click.option("--sample", type=float, help="Compare only a share of the keys: 0.01 is one in a hundred.")
@click.option("--seed", type=int, help="Which keys to sample. Default: different keys each time.")
@click.option("--limit", type=click.IntRange(0), default=10, show_default=True, help="How many differing rows to show.")
@click.option("--float-tolerance", type=float, help="Allowed relative difference of floating-point numbers. Overrides the models' own.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    options: Options,
    mv: tuple[str, ...],
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    sample: float | None,
    seed: int | None,
    limit: int,
    float_tolerance: float | None,
    output: str,
) -> int:
    """Compute each MV again from the snapshots that its last refresh read, and compare the result with its storage. Without names: all
    MVs."""
    from mvbuild import api
    from mvbuild.cli.branch import warn_if_unknown
    from mvbuild.cli.modes import is_quiet
    from mvbuild.cli.output import report
    from mvbuild.cli.progress import Progress, progress_of
    from mvbuild.verify.model import Checked

    if mv and (select or exclude):
        raise click.UsageError("Give names of MVs, or --select and --exclude, not both")
    if seed is not None and sample is None:
        raise click.UsageError("--seed chooses a sample: use it with --sample")
    graph = options.graph()
    warn_if_unknown(graph)
    with Progress(graph, quiet=is_quiet(), err=True) if output == "json" else progress_of(graph) as progress:

        def tell(event: Event) -> None:
            if output == "text" or not isinstance(event, Checked):
                progress(event)

        found = api.verify(
            graph,
            mv,
            select=select,
            exclude=exclude,
            sample=sample,
            seed=seed,
            limit=limit,
            float_tolerance=float_tolerance,
            ends_process=True,
            on_event=tell,
        )
    report(found.diagnostics)
    if output == "json":
        click.echo(json.dumps(to_object(graph, found), default=str, indent=2))
    else:
        progress.verified(found, total(found))
    return 0 if found.ok else 1


def total(found: Verification) -> str:
    """The last lines."""
    statuses = Counter(r.status for r in found.results)
    numbers = {"PASS": "same", "FAIL": "different", "ERROR": "error", "SKIP": "unverifiable"}
    done = " ".join(f"{word}={statuses[status]}" for word, status in numbers.items())  # type: ignore[index]
    sampled = f"Compared a sample of the keys; repeat it with --sample {found.sample:g} --seed {found.seed}\n" if found.sample else ""
    return f"{sampled}Done. {done} TOTAL={len(found.results)}"


def to_object(graph: Graph, found: Verification) -> dict[str, Any]:
    """The result as JSON."""
    return {
        "ok": found.ok,
        "sample": found.sample,
        "seed": found.seed,
        "seconds": round(found.seconds, 3),
        "results": [_result(graph, one) for one in found.results],
    }


def _result(graph: Graph, one: Verified) -> dict[str, Any]:
    return {
        "unique_id": one.node,
        "relation": str(graph.nodes[one.node].identifier),
        "status": one.status,
        "only_in_storage": one.extra,
        "only_in_query": one.missing,
        "reason": _reason(one.reason) if one.reason else None,
        "notes": [_reason(note) for note in one.notes],
        "rows": [{"only_in": d.only_in, "copies": d.copies, "row": dict(zip(one.columns, d.row, strict=True))} for d in one.rows],
        "seconds": round(one.seconds, 3),
        "sql": one.sql or None,
    }


def _reason(reason: Reason) -> dict[str, Any]:
    return {"code": reason.code, "message": reason.message, "table": str(reason.table) if reason.table else None}
