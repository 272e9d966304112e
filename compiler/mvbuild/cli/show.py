"""`mvbuild show MODEL`: some of its rows."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import click

from mvbuild.cli.options import Options, branch_option, project_options
from mvbuild.cli.proposals import names

if TYPE_CHECKING:
    from mvbuild.graph.model import Graph, NodeId
    from mvbuild.source import Span


@click.command("show")
@click.argument("model", required=False, shell_complete=names)
@project_options
@branch_option
@click.option("-s", "--select", "selected", shell_complete=names, help="The same as MODEL.")
@click.option("--inline", help="Rows of this query, which may use ref() and macros, instead of MODEL.")
@click.option("--limit", type=click.IntRange(0), default=10, show_default=True, help="How many rows to show.")
@click.option("--as-of", help="Rows as of a time, in the session's time zone unless it names one, or as of a refresh in `mvbuild history`.")
@click.option("--output", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
def command(
    options: Options, model: str | None, selected: str | None, inline: str | None, limit: int, as_of: str | None, output: str
) -> int:
    """Show rows of MODEL: from its storage if the policy allows that, or if newer data failed its tests; otherwise from its query."""
    from mvbuild import api
    from mvbuild.api.compilation import INLINE
    from mvbuild.cli.branch import warn_if_unknown
    from mvbuild.cli.modes import is_quiet
    from mvbuild.cli.output import report, say, table
    from mvbuild.cli.progress import Progress
    from mvbuild.diagnostics import warning
    from mvbuild.serve.words import caution, origin

    model = model or selected
    if (model is None) == (inline is None):
        raise click.UsageError("Name a model, or give a query with --inline")
    graph = options.graph(inline=inline)
    warn_if_unknown(graph)
    model = model or INLINE
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
    warned = [s for s in (shown.own, *shown.upstream) if s and s.failed]
    report([warning("tests-failed", caution(s), _span(graph, s.node)) for s in warned])
    say(f"from the {shown.origin}")
    for one in shown.upstream:
        say(f"with {one.identifier} from the {origin(one)}")
    return 0


def _span(graph: Graph, id_: NodeId) -> Span | None:
    """None for an MV that is not a model of the project."""
    return graph.model(id_).model.file.line_span(1) if id_ in graph.nodes else None
