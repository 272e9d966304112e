"""diagnostics and tables -> lines on the terminal. Data goes to stdout, everything else to stderr."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from mvbuild.cli.modes import is_json, is_quiet, warnings_are_errors
from mvbuild.diagnostics import Diagnostic
from mvbuild.diagnostics.render import to_text

if TYPE_CHECKING:
    from mvbuild.project.loaded import LoadedProject


def report(diagnostics: Iterable[Diagnostic]) -> int:
    """Print diagnostics to stderr, errors first. Returns the exit code for them: 2 if one is an error."""
    shown = [d for d in diagnostics if d.severity == "error" or not is_quiet() or warnings_are_errors()]
    if warnings_are_errors():
        shown = [replace(d, severity="error") if d.severity == "warning" else d for d in shown]
    diagnostics = sorted(shown, key=lambda d: d.severity != "error")
    if diagnostics and is_json():
        from mvbuild.cli.json_log import write_diagnostics

        write_diagnostics(diagnostics, err=not _is_log())
    elif diagnostics:
        click.echo(colored(to_text(diagnostics)), err=True)
    is_wrong = any(d.severity == "error" for d in diagnostics)
    context = click.get_current_context(silent=True)
    if is_wrong and warnings_are_errors() and context:
        context.find_root().meta["mvbuild.wrong"] = True
    return 2 if is_wrong else 0


def say(message: str) -> None:
    """Print a message that is useful but was not requested."""
    if is_quiet():
        return
    if is_json():
        from mvbuild.cli.json_log import write_event

        write_event("Note", message, {}, err=not _is_log())
    else:
        click.echo(message, err=True)


def _is_log() -> bool:
    """Whether the stdout of the command is a log of events, and not data that was asked for."""
    context = click.get_current_context(silent=True)
    # A failure is reported after the command has ended, in the context of all commands.
    if context is None:
        return False
    name = context.invoked_subcommand or context.command.name
    return name in ("build", "migrate", "retry", "run", "seed", "test") or (name == "verify" and context.params.get("output") == "text")


def note(project: LoadedProject) -> None:
    """Say what the project's directory has that is not read."""
    from mvbuild.project.ignored import ignored

    for sentence in ignored(project):
        say(f"note: {sentence}")


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns aligned with spaces; the last one is not padded."""
    cells = [list(headers), *([_cell(c) for c in row] for row in rows)]
    widths = [max(len(r[i]) for r in cells) for i in range(len(headers))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in cells]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def _cell(value: object) -> str:
    return "" if value is None else str(value).replace("\n", "\\n")


def colored(text: str) -> str:
    """Colour the first words of a diagnostic; click removes colours if the output is not a terminal."""
    lines = []
    for line in text.split("\n"):
        if line.startswith("error["):
            line = click.style(line.split(":")[0], fg="red", bold=True) + line[len(line.split(":")[0]) :]
        elif line.startswith("warning["):
            line = click.style(line.split(":")[0], fg="yellow", bold=True) + line[len(line.split(":")[0]) :]
        elif line.startswith("info["):
            line = click.style(line.split(":")[0], fg="blue", bold=True) + line[len(line.split(":")[0]) :]
        lines.append(line)
    return "\n".join(lines)
