"""The options that several commands share -> Options."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from mvbuild.graph.model import Graph

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Where the project is and how it is to be read."""

    project_dir: Path
    target: str | None
    vars: Mapping[str, Any]
    target_path: Path | None

    def graph(self, threads: int | None = None) -> Graph:
        from mvbuild import api

        return api.compile(self.project_dir, target=self.target, vars=self.vars, target_path=self.target_path, threads=threads)


def project_options(command: F) -> F:
    """--project-dir, --target, --vars, --target-path: passed to the command as one `options`."""

    def wrapped(project_dir: str, target: str | None, vars: str | None, target_path: str | None, **kwargs: Any) -> Any:
        options = Options(
            project_dir=Path(project_dir), target=target, vars=_vars(vars), target_path=Path(target_path) if target_path else None
        )
        return command(options=options, **kwargs)

    wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
    wrapped.__click_params__ = list(getattr(command, "__click_params__", ()))  # type: ignore[attr-defined]
    for option in reversed(_PROJECT):
        option(wrapped)
    return wrapped  # type: ignore[return-value]


def selection_options(command: F) -> F:
    """--select and --exclude."""
    for option in reversed(_SELECTION):
        option(command)
    return command


def _vars(text: str | None) -> Mapping[str, Any]:
    """`{a: 1}` or `a: 1`, as YAML."""
    if text is None:
        return {}
    import yaml

    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise click.UsageError(f"--vars is no YAML mapping: {text}") from exc
    if not isinstance(value, dict) or not all(isinstance(k, str) for k in value):
        raise click.UsageError(f"--vars must be a YAML mapping like '{{key: value}}', not {text!r}")
    return value


def _env(*names: str) -> list[str]:
    """Every flag has its variable, under mvbuild's name and under dbt's, which orchestrators set."""
    return [f"{prefix}_{name}" for name in names for prefix in ("MVBUILD", "DBT")]


_PROJECT = (
    click.option("--project-dir", default=".", envvar=_env("PROJECT_DIR"), show_default=True, help="The directory of mvbuild.yml."),
    click.option("-t", "--target", envvar=_env("TARGET"), help="The target to use; see `targets:` in mvbuild.yml."),
    click.option("--vars", help="Values for var(), as YAML: '{key: value}'. They win over mvbuild.yml."),
    click.option("--target-path", envvar=_env("TARGET_PATH"), help="Where generated files go, instead of target/."),
)
_SELECTION = (
    click.option("-s", "--select", "-m", "--models", "select", multiple=True, help="Which nodes: names, +name, name+, tag:x, path:x."),
    click.option("--exclude", multiple=True, help="Which nodes not; the same grammar."),
)


def is_terminal() -> bool:
    """Whether progress may move the cursor: stderr is a terminal that can, and this is no CI."""
    import sys

    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")
