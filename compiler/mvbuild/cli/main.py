"""argv -> the chosen command: only its module is imported, and nothing leaves as a traceback."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from pathlib import Path

import click

from mvbuild import __version__

COMMANDS = {
    "clean": "Delete what mvbuild generated below target/. Never the catalog.",
    "compile": "Render, parse and resolve the project; write target/compiled and the manifest.",
    "debug": "Check Java, Spark, the jars and the catalog, and say what to mend.",
    "init": "Make a project that runs at once.",
    "ls": "List the project's models, seeds, sources and tests.",
    "plan": "Show what a run would refresh, and exactly why.",
    "run": "Refresh the materialized views that are stale.",
    "show": "Show rows of a model.",
    "status": "Show the freshness of every materialized view.",
    "test": "Run data tests on what is published.",
}


class Commands(click.Group):
    """A group that imports a command when it is called, not before: `--version` must not pay for `run`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"mvbuild.cli.{cmd_name}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            from mvbuild.diagnostics import did_you_mean

            raise click.UsageError(f"{exc.format_message()} {did_you_mean(args[0], COMMANDS)}", ctx) from exc

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "MVBUILD"})
@click.version_option(__version__, prog_name="mvbuild", message="%(prog)s %(version)s")
def group() -> None:
    """A declarative project compiler for Apache Iceberg materialized views."""


def main() -> None:
    """The console script. Exit codes: 0 done or nothing to do, 1 a model or test failed, 2 the project or the command line is wrong."""
    try:
        code = group.main(prog_name="mvbuild", standalone_mode=False)
    except click.exceptions.Exit as exc:
        code = exc.exit_code
    except click.ClickException as exc:
        exc.show()
        code = 2
    except (KeyboardInterrupt, click.exceptions.Abort):
        click.echo("interrupted: what was published stays, nothing else was changed", err=True)
        code = 130
    except BrokenPipeError:
        # The reader of our output went away (`mvbuild ls | head`); there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as exc:  # noqa: BLE001 - the last line of defence: no traceback reaches a user
        code = _explain(exc)
    sys.exit(code if isinstance(code, int) else 0)


def _explain(exc: Exception) -> int:
    """Known failures as diagnostics; what was not foreseen goes into a file, and a message names it."""
    from mvbuild.cli.output import report
    from mvbuild.diagnostics import ProjectError, error
    from mvbuild.ports.catalog import CatalogError
    from mvbuild.ports.engine import EngineError, QueryError

    if isinstance(exc, ProjectError):
        return report(exc.diagnostics)
    if isinstance(exc, CatalogError):
        return report([error("catalog-unreachable" if exc.unreachable else "catalog-error", str(exc))])
    if isinstance(exc, EngineError):
        return report([error(exc.code, str(exc), help=exc.help)])
    if isinstance(exc, QueryError):
        return report([error("query-failed", str(exc))])
    return report([error("internal", f"{type(exc).__name__}; the details are in {_write_down(exc)}")])


def _write_down(exc: Exception) -> Path:
    import tempfile

    with tempfile.NamedTemporaryFile("w", prefix="mvbuild-", suffix=".log", delete=False, encoding="utf-8") as file:
        file.write("".join(traceback.format_exception(exc)))
    return Path(file.name)


if __name__ == "__main__":
    main()
