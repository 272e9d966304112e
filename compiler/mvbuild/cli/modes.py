"""what Click knows of the command that runs -> how it prints, and the options that other modules ask for."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import click


def remembered() -> Mapping[str, Any]:
    """The values of options that are not passed to the command, by the name `mvbuild.<option>`; empty outside a command."""
    context = click.get_current_context(silent=True)
    return context.meta if context else {}


def is_quiet() -> bool:
    """Whether only errors and the requested data are printed: the option --quiet of the command."""
    return bool(remembered().get("mvbuild.quiet"))


def is_debug() -> bool:
    """Whether unexpected failures are shown in full."""
    return bool(remembered().get("mvbuild.debug"))


def is_json() -> bool:
    """Whether messages and progress are JSON: the option --log-format of the command."""
    return remembered().get("mvbuild.log_format") == "json"


def warnings_are_errors() -> bool:
    """--warn-error."""
    return bool(remembered().get("mvbuild.warn_error"))


def is_terminal() -> bool:
    """Whether progress may move the cursor: stderr is a capable terminal, and this is not CI."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")
