"""an unexpected error -> a diagnostic that names a file, which has the traceback."""

from __future__ import annotations

import os
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mvbuild.cli.modes import is_debug

if TYPE_CHECKING:
    from mvbuild.diagnostics import Diagnostic


def internal(exc: Exception) -> Diagnostic:
    """With --debug, the traceback is printed too."""
    from mvbuild.diagnostics import error
    from mvbuild.diagnostics.secrets import masked

    details = masked("".join(traceback.format_exception(exc)), os.environ)
    if is_debug():
        click.echo(details, err=True)
    return error("internal", f"{type(exc).__name__}; details are in {_write_down(details)}")


def _write_down(details: str) -> Path:
    with tempfile.NamedTemporaryFile("w", prefix="mvbuild-", suffix=".log", delete=False, encoding="utf-8") as file:
        file.write(details)
    return Path(file.name)
