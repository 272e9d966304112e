"""`mvbuild rollback MV --to REFRESH`: data and record of another refresh, in one commit."""

from __future__ import annotations

import click

from mvbuild.cli.options import Options, project_options
from mvbuild.cli.proposals import names


@click.command("rollback")
@click.argument("mv", shell_complete=names)
@click.option("--to", "refresh_id", type=click.IntRange(1), required=True, help="Number of the refresh, as listed by `mvbuild history`.")
@project_options
def command(options: Options, mv: str, refresh_id: int) -> int:
    """Put MV back to an earlier refresh, or forward to a later one. The next run refreshes it if its tables have changed since."""
    from mvbuild import api
    from mvbuild.cli.output import say
    from mvbuild.serve.words import reason_text

    node, outcome, freshness = api.rollback(options.graph(), mv, refresh_id)
    click.echo(f"{node.identifier}: {outcome.message}; it is {freshness.state}")
    for reason in freshness.reasons:
        say(f"    {reason_text(reason)}")
    if not freshness.is_fresh:
        say("    The next run refreshes it again, unless you leave it out with --exclude.")
    return 0
