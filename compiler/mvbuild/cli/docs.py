"""`mvbuild docs build|serve`: a site that shows the project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import click

from mvbuild.cli.modes import is_terminal
from mvbuild.cli.options import Options, branch_option, env, project_options
from mvbuild.cli.subcommands import Subcommands

if TYPE_CHECKING:
    from mvbuild.graph.model import Graph


class Docs(Subcommands):
    """`generate` is what dbt calls `build`."""

    aliases: ClassVar[Mapping[str, str]] = {"generate": "build"}


@click.group("docs", cls=Docs)
def command() -> None:
    """A documentation site: the graph, columns and their lineage, SQL, freshness and the history of refreshes."""


@command.command("build")
@project_options
@branch_option
@click.option("--output", type=click.Path(), help="Folder of the site, instead of target/site.")
def build(options: Options, output: str | None) -> int:
    """Build the site as a folder that opens from disk, and write target/catalog.json. Reads the catalog if it can; needs no Spark.
    `docs generate` is the same."""
    graph = options.graph()
    _build(graph, output)
    return 2 if graph.problems else 0


@command.command("serve")
@project_options
@branch_option
@click.option("--output", type=click.Path(), help="Folder of the site, instead of target/site.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, envvar=env("PORT"), help="0 takes any free port.")
@click.option("--browser/--no-browser", default=None, help="Open a browser. Default: on if there is a terminal.")
def serve(options: Options, output: str | None, port: int, browser: bool | None) -> int:
    """Build the site and serve it to the browsers of this machine. Open pages show the current freshness, read from the catalog."""
    from mvbuild import api
    from mvbuild.cli.output import say
    from mvbuild.diagnostics import ProjectError, error
    from mvbuild.site.serve import SiteServer

    graph = options.graph()
    folder = _build(graph, output)
    try:
        server = SiteServer(folder, port, api.live_freshness(graph))
    except OSError as exc:
        message = f"Cannot listen on port {port}: {exc.strerror or exc}"
        raise ProjectError([error("command-line", message, help="Choose another one with --port, or any free one with --port 0.")]) from exc
    with server:
        click.echo(server.url)
        say("Ctrl-C stops the server.")
        if is_terminal() if browser is None else browser:
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            # This is how the server is stopped, so it is not an interruption.
            return 0
    return 0


def _build(graph: Graph, output: str | None) -> Path:
    from mvbuild import api
    from mvbuild.cli.output import report, say

    written, folder, warnings = api.build_docs(graph, output)
    report(warnings)
    say(f"Wrote {written.pages} page{'s' * (written.pages != 1)} into {folder}: open {folder / 'index.html'} in a browser.")
    return folder
