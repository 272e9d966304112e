"""`mvbuild publish --branch NAME`: what a branch has becomes current on main."""

from __future__ import annotations

import click

from mvbuild.cli.options import Options, env, project_options


@click.command("publish")
@project_options
@click.option("--branch", "name", required=True, envvar=env("BRANCH"), help="The branch.")
def command(options: Options, name: str) -> int:
    """Make what a branch has current: tables, records and views, in one commit where the catalog can. The branch is gone afterwards.

    If anything of it was changed on main since, nothing is published.
    """
    from mvbuild import api

    found = api.publish(options.graph(), name)
    for one in found:
        click.echo(f"published {one.identifier}")
    click.echo(f"Done. PUBLISHED={len(found)}")
    return 0
