"""`mvbuild run`: refresh what is stale."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import click

from mvbuild.cli.options import (
    F,
    ListCommand,
    Options,
    branch_option,
    env,
    project_options,
    selection_options,
    store_option,
    stores_failures,
)


def run_options(command: F) -> F:
    """The options of everything that refreshes MVs."""
    for option in reversed(_RUN):
        option(command)
    return command


_RUN = (
    click.option(
        "-f", "--full-refresh", is_flag=True, envvar=env("FULL_REFRESH"), help="Refresh the selected MVs in full, even if they are fresh."
    ),
    click.option("--threads", type=click.IntRange(1, 256), envvar=env("THREADS"), help="How many nodes to run at once."),
    click.option(
        "-x", "--fail-fast/--no-fail-fast", default=False, envvar=env("FAIL_FAST"), help="Start nothing new after the first failure."
    ),
    click.option(
        "--atomic/--no-atomic", default=None, envvar=env("ATOMIC"), help="Publish everything in one commit at the end, or nothing."
    ),
)


@click.command("run", cls=ListCommand)
@project_options
@branch_option
@store_option
@selection_options
@run_options
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
        from mvbuild.lineage.check import column_findings

        graph = options.graph(threads)
        code = report(column_findings(graph))
        planned = api.plan(graph, select=select, exclude=exclude, full_refresh=full_refresh, removed=prune)
        report(planned.warnings)
        click.echo(plan_text(planned, verbose=False, prune=prune))
        return code or int(any(s.action == "blocked" for s in planned.steps))
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
    all_tests: bool = False,
) -> int:
    """Run what is selected, with its progress and summary. Returns the exit code."""
    from mvbuild import api
    from mvbuild.cli.output import note, report, say
    from mvbuild.cli.progress import progress_of

    graph = options.graph(threads, is_kept=full_refresh or all_tests)
    # The graph stays until the command ends: Python need not look for garbage in it.
    gc.freeze()
    note(graph.project)
    with progress_of(graph, together=graph.project.publish == "atomic" if atomic is None else atomic) as progress:
        result = api.run(
            graph,
            select=select,
            exclude=exclude,
            full_refresh=full_refresh,
            fail_fast=fail_fast,
            prune=prune,
            atomic=atomic,
            all_tests=all_tests,
            threads=threads,
            ends_process=True,
            on_event=progress,
            arguments={
                "select": list(select),
                "exclude": list(exclude),
                "full_refresh": full_refresh,
                "fail_fast": fail_fast,
                "store_failures": stores_failures(),
                "prune": prune,
                "atomic": atomic,
                "project_dir": str(options.project_dir),
            },
        )
    report(result.diagnostics)
    progress.renamed(result)
    if prune and not result.ok and not result.dropped and not any(d.code == "has-dependents" for d in result.diagnostics):
        say("nothing was pruned: pruning needs a successful run")
    progress.completed(result)
    return 0 if result.ok else 1
