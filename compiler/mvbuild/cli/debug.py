"""`mvbuild debug`: what is wrong on this machine, and how to fix it."""

from __future__ import annotations

import os
import sys

import click

from mvbuild.cli.options import Options, project_options


@click.command("debug")
@project_options
def command(options: Options) -> int:
    """Check Java, jars, Spark and the catalog. The exit code is 1 if one of them cannot be used."""
    from mvbuild import __version__
    from mvbuild.diagnose import checks
    from mvbuild.project.load import load_project

    click.echo(f"mvbuild   {__version__}, Python {sys.version.split()[0]}")
    project = load_project(options.project_dir, target=options.target, vars=options.vars, env=os.environ, target_path=options.target_path)
    click.echo(f"project   '{project.name}' in {project.root}, target '{project.target.name}'")
    good = True
    for check in checks(project, os.environ, lambda message: click.echo(message, err=True)):
        good = good and check.ok is True
        mark = {True: click.style("ok", fg="green"), False: click.style("ERROR", fg="red"), None: "-"}[check.ok]
        click.echo(f"{check.name:<9} {mark}  {check.found}")
        if check.fix:
            click.echo(f"          help: {check.fix}")
    click.echo("All checks passed." if good else "Some checks failed.")
    return 0 if good else 1
