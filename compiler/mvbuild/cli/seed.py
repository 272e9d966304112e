"""`mvbuild seed`: load the seeds that changed, as `dbt seed` does."""

from __future__ import annotations

import click

from mvbuild.cli.options import ListCommand, Options, branch_option, env, project_options, selection_options

_SEEDS = "resource_type:seed"


@click.command("seed", cls=ListCommand)
@project_options
@branch_option
@selection_options
@click.option("-f", "--full-refresh", is_flag=True, envvar=env("FULL_REFRESH"), help="Load the selected seeds, even if they are fresh.")
@click.option("--threads", type=click.IntRange(1, 256), envvar=env("THREADS"), help="How many seeds to load at once.")
def command(options: Options, select: tuple[str, ...], exclude: tuple[str, ...], full_refresh: bool, threads: int | None) -> int:
    """Load the seeds whose files changed. `mvbuild run` loads them too."""
    from mvbuild.cli.run import execute

    seeds = tuple(f"{word},{_SEEDS}" for text in select for word in text.split()) or (_SEEDS,)
    return execute(options, select=seeds, exclude=exclude, full_refresh=full_refresh, threads=threads)
