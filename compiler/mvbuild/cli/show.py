"""`mvbuild show MODEL`: some of its rows."""

from __future__ import annotations

import csv
import io
import json

import click

from mvbuild.cli.options import Options, branch_option, is_quiet, project_options
from mvbuild.cli.proposals import names


@click.command("show")
@click.argument("model", shell_complete=names)
@project_options
@branch_option
@click.option("--limit", type=click.IntRange(0), default=10, show_default=True, help="How many rows.")
@click.option("--as-of", help="Rows as they were at a time (ISO, UTC), or after a refresh that `mvbuild history` lists.")
@click.option("--output", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
def command(options: Options, model: str, limit: int, as_of: str | None, output: str) -> int:
    """Show rows of MODEL: of its storage while that may be served, otherwise of its query."""
    from mvbuild import api
    from mvbuild.cli.output import say, table
    from mvbuild.cli.progress import Progress
    from mvbuild.serve.words import origin

    graph = options.graph()
    with Progress(graph, quiet=is_quiet()) as progress:
        shown = api.show(graph, model, limit=limit, as_of=as_of, on_event=progress)
    rows = shown.rows
    if output == "json":
        click.echo(json.dumps([dict(zip(rows.columns, row, strict=True)) for row in rows.rows], default=str, indent=2))
    elif output == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([rows.columns, *rows.rows])
        click.echo(text.getvalue(), nl=False)
    else:
        click.echo(table(rows.columns, rows.rows))
    say(f"from the {shown.origin}")
    for one in shown.upstream:
        say(f"with {one.identifier} from the {origin(one)}")
    return 0
