"""`mvbuild import dbt DIR`: a dbt-spark project becomes an mvbuild project, with a scorecard."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from mvbuild.cli.options import env, output_options
from mvbuild.cli.subcommands import Subcommands


@click.group("import", cls=Subcommands)
@output_options
def command() -> None:
    """Make an mvbuild project from a project of another tool."""


@command.command("dbt")
@click.argument("directory")
@click.option("--into", help="Output directory. Default: DIRECTORY with '-mvbuild' appended to its name.")
@click.option("--check", is_flag=True, help="Write nothing; only print the scorecard.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("-t", "--target", envvar=env("TARGET"), help="Target of the profile. Default: the profile's own target.")
@click.option("--profiles-dir", envvar=env("PROFILES_DIR"), help="Directory of profiles.yml. Default: DIRECTORY.")
@click.option("--schema", help="Schema of the target if there is no profiles.yml. Default: main.")
@click.option("--vars", envvar=env("VARS"), help="Values for var(), as YAML: '{key: value}'.")
@click.option(
    "--full-query",
    multiple=True,
    metavar="MODEL",
    help="Take this model's query without its is_incremental() branches, even if dbt's runs build a different table. Wildcards work.",
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@output_options
def dbt(
    directory: str,
    into: str | None,
    check: bool,
    force: bool,
    target: str | None,
    profiles_dir: str | None,
    schema: str | None,
    vars: str | None,
    full_query: tuple[str, ...],
    output: str,
) -> int:
    """Make an mvbuild project from the dbt-spark project in DIRECTORY, whose files are not changed. The exit code is 1 if something was
    refused."""
    from mvbuild.cli.options import vars_of
    from mvbuild.cli.output import report, say
    from mvbuild.dbt.scorecard import to_text
    from mvbuild.dbt.takeover import take_over
    from mvbuild.dbt.write import write
    from mvbuild.diagnostics import error

    root = Path(directory)
    profiles = (Path(profiles_dir),) if profiles_dir else ()
    found = take_over(root, target=target, schema=schema, profiles=profiles, vars=vars_of(vars), env=os.environ, full_query=full_query)
    place = Path(into) if into else root.resolve().parent / f"{root.resolve().name}-mvbuild"
    if not check and found.files:
        write(found.files, place, root=root, force=force)
    files = [] if check else sorted(found.files)
    if output == "json":
        click.echo(json.dumps({**found.card.as_json(), "into": None if check else str(place), "files": files}, indent=2))
    else:
        click.echo(to_text(found.card))
    if not found.files:
        why = next((r.message for item in found.card.items if item.kind == "project" for r in item.shown if r.refuses), "")
        message = f"Nothing {'would be' if check else 'was'} written: {why or 'no file of the project can be imported'}"
        return report([error("nothing-imported", message, help="Fix the problems that the scorecard reports.")])
    if files:
        say(f"\nWrote {len(files)} files to {place}. Set the catalog under `targets:` in its mvbuild.yml.")
    return 1 if found.card.refuses else 0
