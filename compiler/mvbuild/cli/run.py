"""`mvbuild run`: refresh what is stale."""

from __future__ import annotations

from collections.abc import Sequence

import click

from mvbuild.cli.options import ListCommand, Options, branch_option, env, project_options, selection_options, store_option


@click.command("run", cls=ListCommand)
@project_options
@branch_option
@store_option
@selection_options
@click.option(
    "-f", "--full-refresh", is_flag=True, envvar=env("FULL_REFRESH"), help="Refresh the selected MVs in full, even if they are fresh."
)
@click.option("--threads", type=click.IntRange(1, 256), envvar=env("THREADS"), help="How many nodes to run at once.")
@click.option("-x", "--fail-fast/--no-fail-fast", default=False, envvar=env("FAIL_FAST"), help="Start nothing new after the first failure.")
@click.option("--atomic/--no-atomic", default=None, envvar=env("ATOMIC"), help="Publish everything in one commit at the end, or nothing.")
@click.option("--prune", is_flag=True, envvar=env("PRUNE"), help="After the run, drop what removed models left behind.")
@click.option("--dry-run", is_flag=True, help="Show the plan and stop.")
def command(
    options: Options,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    full_refresh: bool,
    threads: int | None,
    fail_fast: bool,
    atomic: bool | None,
    prune: bool,
    dry_run: bool,
) -> int:
    """Refresh the materialized views that are stale, in the order of their dependencies."""
    if prune and (select or exclude):
        raise click.UsageError("--prune cannot be combined with --select or --exclude")
    if dry_run:
        from mvbuild import api
        from mvbuild.cli.output import report
        from mvbuild.cli.plan import plan_text

        graph = options.graph(threads)
        planned = api.plan(graph, select=select, exclude=exclude, full_refresh=full_refresh, removed=prune)
        report(planned.warnings)
        click.echo(plan_text(planned, verbose=False, prune=prune))
        return 0
    return execute(
        options,
        select=select,
        exclude=exclude,
        full_refresh=full_refresh,
        threads=threads,
        fail_fast=fail_fast,
        atomic=atomic,
        prune=prune,
    )


def execute(
    options: Options,
    *,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    full_refresh: bool = False,
    threads: int | None = None,
    fail_fast: bool = False,
    atomic: bool | None = None,
    prune: bool = False,
) -> int:
    """Run what is selected, with its progress and summary. Returns the exit code."""
    from mvbuild import api
    from mvbuild.cli.output import is_quiet, note, report, say
    from mvbuild.cli.progress import Progress, summary

    graph = options.graph(threads)
    note(graph.project)
    with Progress(graph, quiet=is_quiet()) as progress:
        result = api.run(
            graph,
            select=select,
            exclude=exclude,
            full_refresh=full_refresh,
            fail_fast=fail_fast,
            prune=prune,
            atomic=atomic,
            threads=threads,
            on_event=progress,
            arguments={
                "select": list(select),
                "exclude": list(exclude),
                "full_refresh": full_refresh,
                "prune": prune,
                "atomic": atomic,
                "project_dir": str(options.project_dir),
            },
        )
    # Errors in the SQL of models were reported when they were compiled.
    report([*result.diagnostics, *(d for r in result.results for d in r.diagnostics if d not in graph.problems)])
    for old, new in result.renamed:
        click.echo(f"renamed {old} to {new}")
    for name in result.dropped:
        click.echo(f"dropped {name}")
    if prune and not result.ok and not result.dropped and not any(d.code == "has-dependents" for d in result.diagnostics):
        say("nothing was pruned: pruning needs a successful run")
    click.echo(summary(graph, result))
    return 0 if result.ok else 1
