"""argv -> the chosen command: only its module is imported, and no traceback reaches the user."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mvbuild import __version__
from mvbuild.cli.dbt_options import INSTEAD
from mvbuild.cli.options import REPORTED, output_options
from mvbuild.cli.pipes import outlive_readers
from mvbuild.cli.subcommands import NoSuchCommand, Subcommands

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from mvbuild.diagnostics import Diagnostic

COMMANDS = {
    "branch": "List branches, or drop one.",
    "build": "Run, and run the data tests of everything else that is selected.",
    "ci": "Print a CI workflow for GitHub or GitLab that lints and plans what a branch changes.",
    "clean": "Delete the files that mvbuild generated in target/. Never touches the catalog.",
    "compile": "Render, parse and resolve the project; write target/compiled and the manifest.",
    "completion": "Print the completion script of a shell.",
    "debug": "Check Java, Spark, jars and the catalog, and suggest fixes.",
    "deps": "Install the packages of packages.yml, and pin them in packages.lock.",
    "diff": "Compare the rows of a branch with those of main.",
    "docs": "Build a documentation site of the project, or serve it with live freshness.",
    "drop": "Drop an MV or view with its storage and files, unless something reads it.",
    "engine": "Show or stop the Spark that commands leave warm for the next one.",
    "explain": "Show how an MV would be refreshed: what changed, and which strategies apply.",
    "history": "List the refreshes of an MV that are kept in its history.",
    "import": "Import a dbt-spark project, with a scorecard.",
    "init": "Create a small project that is ready to run.",
    "lint": "Report suspicious SQL and YAML, and fix what it safely can.",
    "lineage": "Show where the columns of a model come from, or where they go.",
    "lock": "Write schemas.lock: the columns of the tables that the project reads.",
    "ls": "List the project's models, seeds, sources and tests.",
    "lsp": "Start the language server: diagnostics, definitions, hovers and completion.",
    "maintain": "Compact storage, expire old snapshots and remove orphan files.",
    "migrate": "Convert MVs to another storage format without recomputing a row.",
    "plan": "Show what a run would refresh, and exactly why.",
    "publish": "Publish what a branch has built to main.",
    "retry": "Run again what failed or was skipped in the last run.",
    "rollback": "Roll an MV back to an earlier refresh, data and record together.",
    "run": "Refresh the materialized views that are stale.",
    "seed": "Load the seeds that changed, and nothing else.",
    "schema": "Print JSON Schemas of the YAML files, for editors.",
    "show": "Show rows of a model.",
    "source": "Compare the age of the sources with their `freshness`, without a query.",
    "status": "Show the freshness of every materialized view.",
    "test": "Run data tests on the published data.",
    "verify": "Compare MVs with their queries at the snapshots they were refreshed from.",
    "watch": "Keep the materialized views fresh until it is stopped.",
}

ALIASES = {"list": "ls", "parse": "compile"}
"""Commands of dbt -> the command that does the same."""
NOT_HERE = {
    "clone": "Work on a branch of the tables instead: `mvbuild run --branch NAME`.",
    "freshness": "Write `mvbuild source freshness`; `mvbuild status` shows how fresh the MVs are.",
    "run-operation": "Run the SQL in Spark, outside of mvbuild.",
    "snapshot": "Keep snapshots in dbt, and read their tables as sources.",
}
"""Other commands of dbt -> what to do instead."""
_WITH_VALUES = frozenset(
    (
        "-t",
        "--target",
        "--project-dir",
        "--vars",
        "--target-path",
        "--state",
        "--threads",
        "--profiles-dir",
        "--profile",
        "--indirect-selection",
        "--log-format",
    )
)
_LAST = "the last attempt"
"""What Click carries for a command that is called once more; see `_called`."""
_FLAGS = frozenset(("--offline", "-x", "--fail-fast", "--store-failures", "--no-store-failures"))


class Commands(click.Group):
    """A group that imports a command only when it is called: `--version` must not pay for `run`."""

    def invoke(self, ctx: click.Context) -> Any:
        """Failures are reported while the options for colours and debugging are still known."""
        try:
            code = super().invoke(ctx)
            return 2 if not code and ctx.meta.get("mvbuild.wrong") else code
        except (click.exceptions.Exit, click.Abort):
            raise
        except Exception as exc:
            if ctx.obj != _LAST and _is_overtaken(exc):
                raise _Again from exc
            return _explain(exc)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _options_last(args))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"mvbuild.cli.{_module(cmd_name)}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in {*COMMANDS, *ALIASES} and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise NoSuchCommand(args[0], (*COMMANDS, *ALIASES), ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """From the table, because the names of the commands do not require importing their modules."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=summary) for name, summary in sorted(COMMANDS.items()) if name.startswith(incomplete)]
        return found if incomplete[:1].isalpha() or not incomplete else [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))
        with formatter.section("Names of dbt"):
            formatter.write_dl([(name, f"The same as {command}.") for name, command in ALIASES.items()])


def _options_last(args: list[str]) -> list[str]:
    """Options of a project may be written before the command, as in dbt: `mvbuild --target prod run`."""
    own: list[str] = []
    moved: list[str] = []
    rest = list(args)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        name, _, value = option.partition("=")
        if name in _WITH_VALUES or (name in INSTEAD and rest and not rest[0].startswith("-") and rest[0] not in {*COMMANDS, *ALIASES}):
            moved += [option, *([rest.pop(0)] if rest and not value else [])]
        else:
            (moved if name in _FLAGS or name in INSTEAD else own).append(option)
    return [*own, *rest[:1], *moved, *rest[1:]] if rest else args


def _module(command: str) -> str:
    """The module of a command; `import` is a Python keyword."""
    return f"{command}_" if iskeyword(command) else command


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@output_options
@click.version_option(__version__, "-V", "-v", "--version", prog_name="mvbuild", message="%(prog)s %(version)s")
def group() -> None:
    """A declarative project compiler for Apache Iceberg materialized views."""


def main() -> None:
    """The console script. Exit codes: 0 done or nothing to do, 1 a model or test failed, 2 the project or the command line is wrong."""
    signal.signal(signal.SIGTERM, _terminate)
    outlive_readers()
    # A command keeps most of what it creates until it ends: looking for garbage after every 700 objects costs a fifth of its time.
    gc.set_threshold(200_000, 20, 20)
    try:
        code = _called()
    except click.exceptions.NoArgsIsHelpError as exc:
        exc.show()
        code = 2
    except click.ClickException as exc:
        code = _explain(exc)
    except (KeyboardInterrupt, click.exceptions.Abort) as exc:
        click.echo("interrupted: what was published stays, nothing else was changed", err=True)
        code = 143 if isinstance(exc.__cause__ or exc, Terminated) else 130
    except OSError as exc:
        code = _unwritable(exc)
    # Python looks for garbage once more when it ends: 0.15 s of a run on 10,000 MVs.
    gc.freeze()
    sys.exit(code if isinstance(code, int) else 0)


def _called() -> Any:
    """The exit code of the command. If files were changed while it read the project, it had done nothing yet, and begins once more."""
    try:
        return group.main(prog_name="mvbuild", standalone_mode=False)
    except _Again:
        return group.main(prog_name="mvbuild", standalone_mode=False, obj=_LAST)


class _Again(Exception):
    """The command has to begin once more."""


def _is_overtaken(exc: Exception) -> bool:
    from mvbuild.project.files import FilesChanged

    return isinstance(exc, FilesChanged)


def _unwritable(exc: OSError) -> int:
    """stdout or stderr can no longer be written. The rest of the output goes nowhere, or Python would fail again when it ends."""
    with suppress(OSError):
        click.echo(f"error[unwritable-target]: Cannot write the output: {exc.strerror or exc}", err=True)
    with suppress(OSError), Path(os.devnull).open("wb") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)
    return 2


class Terminated(KeyboardInterrupt):
    """SIGTERM, with which orchestrators end a run: it cleans up as after Ctrl-C."""


def _terminate(*_: object) -> None:
    raise Terminated


def _explain(exc: Exception) -> int:
    """Known failures as diagnostics. An unexpected one is written to a file, and a message names the file."""
    from mvbuild.cli.internal import internal
    from mvbuild.cli.output import report
    from mvbuild.diagnostics import ProjectError, error
    from mvbuild.ports.catalog import CatalogError
    from mvbuild.ports.engine import EngineError, QueryError
    from mvbuild.project.files import FilesChanged

    if isinstance(exc, click.ClickException):
        return report([_misuse(exc)])
    if isinstance(exc, (ProjectError, FilesChanged)):
        # Errors of the project were printed when it was read.
        context = click.get_current_context(silent=True)
        already = context.meta.get(REPORTED, ()) if context else ()
        return report(d for d in exc.diagnostics if d not in already) or 2
    if isinstance(exc, CatalogError):
        return report([error("catalog-unreachable" if exc.unreachable else "catalog-error", str(exc))])
    if isinstance(exc, EngineError):
        return report([error(exc.code, str(exc), help=exc.help)])
    if isinstance(exc, QueryError):
        return report([error("query-failed", str(exc))])
    if isinstance(exc, OSError) and exc.errno == errno.ENOSPC and exc.filename is None:
        help = "Free some space, or send the output elsewhere."
        return report([error("unwritable-target", f"Cannot write the output: {exc.strerror}", help=help)])
    return report([internal(exc)])


def _misuse(exc: click.ClickException) -> Diagnostic:
    """Errors of the command line."""
    from mvbuild.diagnostics import did_you_mean, error

    context = exc.ctx if isinstance(exc, click.UsageError) else None
    help = f"See `{context.command_path} --help`." if context else ""
    message = exc.format_message()
    if isinstance(exc, NoSuchCommand):
        instead = NOT_HERE.get(exc.name, "") if context and context.command is group else ""
        help = instead or did_you_mean(exc.name, exc.known)
    elif context and isinstance(context.command, Subcommands) and message.startswith("Missing command"):
        message = context.command.missing(context)
    elif isinstance(exc, click.NoSuchOption):
        message = f"Unknown option '{exc.option_name}'"
        options = [name for p in context.command.get_params(context) for name in p.opts if name.startswith("--")] if context else []
        # Without the dashes, which all of them have.
        near = did_you_mean(exc.option_name.lstrip("-"), [name.lstrip("-") for name in options])
        short = "Write --output." if exc.option_name == "-o" and "--output" in options else ""
        help = short or INSTEAD.get(exc.option_name) or (near.replace("'", "'--", 1) if near.startswith("Did") else help)
    elif context and "unexpected extra argument" in message and any(param.name == "select" for param in context.command.params):
        help = f"Choose nodes by name with --select: `{context.command_path} --select NAME`."
    return error("command-line", message.rstrip("."), help=help)


if __name__ == "__main__":
    main()
