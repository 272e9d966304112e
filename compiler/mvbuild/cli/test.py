"""`mvbuild test`: data tests on what is published."""

from __future__ import annotations

from collections.abc import Sequence

import click

from mvbuild.cli.options import ListCommand, Options, branch_option, env, project_options, selection_options, store_option


@click.command("test", cls=ListCommand)
@project_options
@branch_option
@store_option
@selection_options
@click.option("--threads", type=click.IntRange(1, 256), envvar=env("THREADS"), help="How many unit tests to run at once.")
def command(options: Options, select: tuple[str, ...], exclude: tuple[str, ...], threads: int | None) -> int:
    """Run the data tests of models, seeds and sources on what the catalog has now. A run tests its MVs itself, before they are
    published."""
    return execute(options, select=select, exclude=exclude, threads=threads)


def execute(options: Options, *, select: Sequence[str] = (), exclude: Sequence[str] = (), threads: int | None = None) -> int:
    """Run the selected tests, with their progress and summary. Returns the exit code."""
    from mvbuild import api
    from mvbuild.cli.output import report
    from mvbuild.cli.progress import progress_of

    graph = options.graph(threads)
    with progress_of(graph) as progress:
        result = api.test(graph, select=select, exclude=exclude, ends_process=True, on_event=progress)
    report(result.diagnostics)
    progress.completed(result)
    return 0 if result.ok else 1


command.__test__ = False  # type: ignore[attr-defined]
