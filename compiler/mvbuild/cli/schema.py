"""`mvbuild schema`: the JSON Schemas of the YAML files, for editors."""

from __future__ import annotations

from pathlib import Path

import click

from mvbuild.cli.options import output_options

_NAMES = ("mvbuild", "properties", "selectors")


@click.command("schema")
@click.argument("name", type=click.Choice(_NAMES), required=False)
@click.option("--output", metavar="DIR", help="Write the schemas of all files to this directory.")
@output_options
def command(name: str | None, output: str | None) -> int:
    """Print the JSON Schema of mvbuild.yml (`mvbuild`), of YAML beside models and seeds (`properties`) or of selectors.yml (`selectors`).
    Without a NAME, print all of them as one object."""
    import json

    from mvbuild.cli.output import report, say
    from mvbuild.diagnostics import error
    from mvbuild.schemas.files import page, schema, write_all

    if output is None:
        click.echo(page(name).rstrip() if name else json.dumps({each: schema(each) for each in _NAMES}, indent=2))
        return 0
    if name:
        raise click.UsageError("--output writes all schemas: it cannot be combined with NAME")
    try:
        for path in write_all(Path(output)):
            say(f"wrote {path}")
    except OSError as exc:
        return report([error("unwritable-target", f"Cannot write to {output}: {exc.strerror or exc}", help="Choose another directory.")])
    return 0
