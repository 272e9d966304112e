"""`mvbuild build`: run, then the data tests that no refresh of the run needed, as `dbt build` does."""

from __future__ import annotations

from typing import Any

import click

from mvbuild.cli.options import ListCommand, Options, branch_option, project_options, selection_options, store_option
from mvbuild.cli.run import run_options


@click.command("build", cls=ListCommand)
@project_options
@branch_option
@store_option
@selection_options
@run_options
def command(options: Options, **arguments: Any) -> int:
    """Refresh the materialized views that are stale, and run all selected data tests: those of a refreshed MV before it is published, those
    of seeds, sources, views and fresh MVs at the end."""
    from mvbuild.cli import run

    return run.execute(options, all_tests=True, **arguments)
