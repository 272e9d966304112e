"""`mvbuild source freshness`: how old the data of the sources is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import click

from mvbuild.cli.options import ListCommand, Options, branch_option, project_options, selection_options
from mvbuild.cli.subcommands import Subcommands

_COLORS = {"pass": "green", "warn": "yellow", "error": "red", "runtime error": "red"}


class Source(Subcommands):
    """`snapshot-freshness` is dbt's older name of `freshness`."""

    aliases: ClassVar[Mapping[str, str]] = {"snapshot-freshness": "freshness"}


@click.group("source", cls=Source)
def command() -> None:
    """The tables that the project reads."""


@command.command("freshness", cls=ListCommand)
@project_options
@branch_option
@selection_options
def freshness(options: Options, select: tuple[str, ...], exclude: tuple[str, ...]) -> int:
    """Compare the age of each source with its `freshness`, and write target/sources.json. Its age is that of its current snapshot: no query
    runs, and Spark is not needed. The exit code is 1 if a source is too old."""
    from mvbuild.api.source_freshness import source_freshness
    from mvbuild.cli.modes import warnings_are_errors
    from mvbuild.cli.output import report, say
    from mvbuild.serve.words import duration, utc

    graph = options.graph()
    ages, warnings = source_freshness(graph, select=select, exclude=exclude)
    report(warnings)
    names = {one.node.id: f"{one.node.source.source}.{one.node.source.name}" for one in ages if one.node.source}
    width = max(map(len, names.values()), default=0)
    for one in ages:
        age = "has no snapshot that can be read"
        if one.age is not None and one.loaded_ms is not None:
            age = f"{duration(int(one.age.total_seconds() * 1000))} old, of {utc(one.loaded_ms)}"
        click.echo(f"{click.style(f'{one.status:<5}', fg=_COLORS[one.status])}  {names[one.node.id]:<{width}}  {age}")
    if not ages:
        say("No selected source has `freshness:`.")
    failing = ("error", "runtime error", "warn") if warnings_are_errors() else ("error", "runtime error")
    return 1 if any(one.status in failing for one in ages) else 0
