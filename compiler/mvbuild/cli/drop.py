"""`mvbuild drop`: an MV or view with its storage and files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mvbuild.cli.options import Options, project_options
from mvbuild.cli.proposals import names

if TYPE_CHECKING:
    from mvbuild.plan.removed import Removed


@click.command("drop")
@click.argument("name", shell_complete=names)
@project_options
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def command(options: Options, name: str, yes: bool) -> int:
    """Drop the MV or view NAME (a model, or `namespace.name` in the catalog) that mvbuild wrote, with its storage and files, unless
    something reads it."""
    from mvbuild import api
    from mvbuild.cli.output import report, say
    from mvbuild.diagnostics import ProjectError

    try:
        dropped = api.drop(options.graph(), name, confirm=lambda item: yes or _asked(item))
    except ProjectError as exc:
        report(exc.diagnostics)
        return 1 if all(d.code == "has-dependents" for d in exc.diagnostics) else 2
    if dropped is None:
        return 1
    names = ", ".join(str(n) for n in dropped.names)
    click.echo(f"dropped {names} ({dropped.files} file{'s' * (dropped.files != 1)})")
    for one in dropped.unreadable:
        say(f"only the catalog entry of {one}: its metadata cannot be read, so its files are unknown and are kept")
    return 0


def _asked(item: Removed) -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("Cannot ask for confirmation without a terminal: pass --yes")
    names = ", ".join(str(n) for n in item.names)
    if item.unreadable:
        return click.confirm(
            f"Drop {names}? The metadata of {item.unreadable[0].identifier} cannot be read, so its files are kept", err=True
        )
    return click.confirm(f"Drop {names} and all their files? This cannot be undone", err=True)
