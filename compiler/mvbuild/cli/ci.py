"""`mvbuild ci SERVICE`: the configuration with which a CI service lints a project and plans it against the target branch of a change."""

from __future__ import annotations

import click

from mvbuild.cli.options import output_options


@click.command("ci")
@click.argument("service", type=click.Choice(["github", "gitlab"]))
@output_options
def command(service: str) -> int:
    """Print a workflow for GitHub, or a job for GitLab: lint and plan of a pull request, as annotations and as a comment."""
    from importlib.resources import files

    click.echo((files("mvbuild_templates") / "ci" / f"{service}.yml").read_text(encoding="utf-8").rstrip())
    return 0
