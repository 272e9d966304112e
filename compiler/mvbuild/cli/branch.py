"""`mvbuild branch list|drop`: the branches that have something of the project."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import click

from mvbuild.cli.options import Options, project_options
from mvbuild.cli.subcommands import Subcommands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mvbuild.graph.model import Graph
    from mvbuild.lifecycle.branches import OnBranch


def warn_if_unknown(graph: Graph) -> None:
    """A branch that has nothing of the project shows what main has."""
    from mvbuild import api
    from mvbuild.cli.output import report
    from mvbuild.diagnostics import ProjectError, warning

    if graph.project.branch is None:
        return
    try:
        api.branch_contents(graph, graph.project.branch)
    except ProjectError as exc:
        unknown = [d for d in exc.diagnostics if d.code == "unknown-branch"]
        report([warning(d.code, f"{d.message}: showing main", help=d.help) for d in unknown])


@click.group("branch", cls=Subcommands)
def command() -> None:
    """Iceberg branches of the project's tables, as `mvbuild run --branch` builds them."""


@command.command("list")
@project_options
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def list_branches(options: Options, output: str) -> int:
    """List the branches, and what each has."""
    from mvbuild import api

    graph = options.graph()
    found = {name: api.branch_contents(graph, name) for name in api.branch_names(graph)}
    if output == "json":
        objects = [
            {"branch": name, "tables": [{"name": str(one.identifier), "standing": one.standing} for one in has]}
            for name, has in found.items()
        ]
        click.echo(json.dumps(objects, indent=2))
        return 0
    for name, has in found.items():
        click.echo(f"{name}: {counted(has)}")
        for one in has:
            click.echo(f"    {one.standing:<9} {one.identifier}")
    if not found:
        click.echo("no branches")
    return 0


@command.command("drop")
@click.argument("name")
@project_options
def drop(options: Options, name: str) -> int:
    """Drop a branch. Main does not change."""
    from mvbuild import api

    has, files = api.drop_branch(options.graph(), name)
    click.echo(f"dropped branch {name}: {counted(has)}, {files} files of tables that only it had")
    return 0


def counted(has: Sequence[OnBranch]) -> str:
    """A number and its noun: `1 table`, `2 tables`."""
    numbers = Counter(one.standing for one in has)
    return ", ".join(f"{n} {what}" for what, n in sorted(numbers.items()))
