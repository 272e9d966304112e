"""`mvbuild migrate --to FORMAT`: convert MVs to another storage format, without recomputing a row."""

from __future__ import annotations

import click

from mvbuild.cli.options import ListCommand, Options, project_options, selection_options
from mvbuild.formats.record import STORAGE_FORMATS


@click.command("migrate", cls=ListCommand)
@click.option("--to", type=click.Choice(STORAGE_FORMATS), required=True, help="The target format.")
@project_options
@selection_options
def command(options: Options, to: str, select: tuple[str, ...], exclude: tuple[str, ...]) -> int:
    """Convert the selected materialized views to another storage format. No row is read or written."""
    from mvbuild import api
    from mvbuild.cli.output import report
    from mvbuild.cli.progress import progress_of

    graph = options.graph()
    with progress_of(graph) as progress:
        result = api.migrate(graph, to=to, select=select, exclude=exclude, on_event=progress)  # type: ignore[arg-type]
    report(result.diagnostics)
    progress.completed(result)
    return 0 if result.ok else 1
