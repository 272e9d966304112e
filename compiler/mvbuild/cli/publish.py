"""`mvbuild publish --branch NAME`: make what a branch has current on main."""

from __future__ import annotations

import click

from mvbuild.cli.options import Options, env, project_options


@click.command("publish")
@project_options
@click.option("--branch", "name", required=True, envvar=env("BRANCH"), help="The branch.")
def command(options: Options, name: str) -> int:
    """Make what a branch has current: tables, records and views, in one commit if the catalog can. The branch is removed afterwards.

    If any of it has changed on main since the branch was built, nothing is published.
    """
    from mvbuild import api

    found = api.publish(options.graph(), name)
    for one in found:
        click.echo(f"published {one.identifier}")
    click.echo(f"Done. PUBLISHED={len(found)}")
    return 0
