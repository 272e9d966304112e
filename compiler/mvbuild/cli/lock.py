"""`mvbuild lock`: schemas.lock, the columns of the tables that the project reads."""

from __future__ import annotations

import click

from mvbuild.cli.options import Options, project_options


@click.command("lock")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if the file differs from the catalog.")
@project_options
def command(options: Options, check: bool) -> int:
    """Write schemas.lock from the catalog: with it, `compile` and `lint` know the columns without a catalog. Needs no Spark."""
    from mvbuild import api
    from mvbuild.cli.output import report, say
    from mvbuild.diagnostics import Note, error
    from mvbuild.lineage.lock import NAME
    from mvbuild.source import SourceFile, Span

    found = api.lock(options.graph(), write=not check)
    report(found.warnings)
    tables = f"{found.tables} table{'s' * (found.tables != 1)}"
    if not check:
        say(f"Wrote {NAME} with {tables}." if found.differences or found.is_new else f"{NAME} is up to date, with {tables}.")
        return 0
    if not found.differences and not found.is_new:
        say(f"{NAME} is up to date, with {tables}.")
        return 0
    notes = [Note(message=line) for line in found.differences]
    message = f"There is no {NAME}" if found.is_new else f"{NAME} differs from the catalog"
    span = None if found.is_new else Span(SourceFile(NAME, ""), 0, 0)
    report([error("lock-out-of-date", message, span, notes=notes)])
    return 1
