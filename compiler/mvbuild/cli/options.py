"""The options that several commands share -> Options."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mvbuild.cli import proposals
from mvbuild.cli.dbt_options import RESOURCE_TYPES, WITHOUT_MEANING
from mvbuild.cli.modes import remembered, warnings_are_errors
from mvbuild.dataclass import dataclass

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from mvbuild.graph.model import Graph

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Where the project is, and how to read it."""

    project_dir: Path
    target: str | None
    vars: Mapping[str, Any]
    target_path: Path | None
    branch: str | None = None
    state: str | None = None

    def graph(self, threads: int | None = None, inline: str | None = None, *, is_kept: bool = True) -> Graph:
        """`is_kept`: as in `api.compile`."""
        from mvbuild.api import compilation
        from mvbuild.cli.output import report

        graph = compilation.compile(
            self.project_dir,
            target=self.target,
            vars=self.vars,
            target_path=self.target_path,
            threads=threads,
            branch=self.branch,
            state=self.state,
            indirect=remembered().get(_INDIRECT, "eager"),
            resource_types=remembered().get(_TYPES, RESOURCE_TYPES),
            inline=inline,
            is_kept=is_kept,
        )
        problems = (*graph.problems, *graph.warnings)
        report(problems)
        context = click.get_current_context(silent=True)
        if context:
            context.meta[REPORTED] = problems
        if warnings_are_errors() and graph.warnings:
            raise click.exceptions.Exit(2)
        store = stores_failures()
        return graph.with_tests(strict=warnings_are_errors(), store=store) if warnings_are_errors() or store is not None else graph


def project_options(command: F) -> F:
    """--project-dir, --target, --vars, --target-path: passed to the command as one `options`. And the output options."""

    def wrapped(
        project_dir: str, target: str | None, vars: str | None, target_path: str | None, branch: str | None = None, **kwargs: Any
    ) -> Any:
        options = Options(
            project_dir=Path(project_dir),
            target=target,
            vars=vars_of(vars),
            target_path=Path(target_path) if target_path else None,
            branch=branch,
            state=remembered().get(_STATE),
        )
        return command(options=options, **kwargs)

    wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
    for option in reversed((*_PROJECT, *_OUTPUT)):
        option(wrapped)
    # click shows options in reverse order: those of the command come first in its help, and those that all commands have last.
    wrapped.__click_params__ += getattr(command, "__click_params__", ())  # type: ignore[attr-defined]
    return wrapped  # type: ignore[return-value]


def branch_option(command: F) -> F:
    """--branch, which becomes part of `options`: for commands that work on a branch as on main."""
    return click.option("--branch", envvar=env("BRANCH"), help="Work on this Iceberg branch of the project's tables; main stays as it is.")(
        command
    )


def selection_options(command: F) -> F:
    """--select and --exclude; --selector, which becomes part of `select`; and --state and --resource-type, which become part of
    `options`."""

    def wrapped(
        select: tuple[str, ...],
        exclude: tuple[str, ...],
        selector: str | None,
        resource_type: tuple[str, ...],
        exclude_resource_type: tuple[str, ...],
        **kwargs: Any,
    ) -> Any:
        if selector is not None and (select or exclude):
            raise click.UsageError(
                "--selector is a complete selection: use `--select selector:NAME` to combine it with others or with --exclude"
            )
        click.get_current_context().meta[_TYPES] = _types(resource_type, exclude_resource_type)
        return command(select=(f"selector:{selector}",) if selector is not None else select, exclude=exclude, **kwargs)

    wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
    wrapped.__click_params__ = list(getattr(command, "__click_params__", ()))  # type: ignore[attr-defined]
    for option in reversed(_SELECTION):
        option(wrapped)
    return wrapped  # type: ignore[return-value]


def _types(wanted: tuple[str, ...], without: tuple[str, ...]) -> tuple[str, ...]:
    """The chosen types of resources. `all` and `default` are every type, as in dbt."""
    chosen = RESOURCE_TYPES if not wanted or {"all", "default"} & {*wanted} else wanted
    return tuple(kind for kind in RESOURCE_TYPES if kind in chosen and kind not in without)


def output_options(command: F) -> F:
    """--quiet, --no-use-colors, --debug, --log-format: before or after the command's name, as in dbt."""
    own = list(getattr(command, "__click_params__", ()))
    command.__click_params__ = []  # type: ignore[attr-defined]
    for option in reversed(_OUTPUT):
        option(command)
    command.__click_params__ += own  # type: ignore[attr-defined]
    return command


class ListCommand(click.Command):
    """`--select a b --exclude c`: as in dbt, all words up to the next option belong to an option that accepts a list."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        lists = {name for p in self.get_params(ctx) if p.multiple for name in p.opts}
        last = next((arg for arg in reversed(args) if arg.startswith("-")), "").partition("=")[0]
        if last in lists:
            ctx.meta[_LIST] = last
        return super().parse_args(ctx, list(_repeated(args, lists)))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """A word after the first one of a list belongs to the list too."""
        if ctx.meta.get(_LIST) and not incomplete.startswith("-"):
            return next(p for p in self.get_params(ctx) if ctx.meta[_LIST] in p.opts).shell_complete(ctx, incomplete)
        return super().shell_complete(ctx, incomplete)


def _repeated(args: Iterable[str], lists: Collection[str]) -> Iterator[str]:
    """`--select a b` -> `--select a --select b`."""
    option, is_first = "", False
    for arg in args:
        if arg.startswith("-"):
            option, _, value = arg.partition("=")
            option, is_first = (option, not value) if option in lists else ("", False)
        elif option and not is_first:
            yield option
        else:
            is_first = False
        yield arg


REPORTED = "mvbuild.reported"
"""The diagnostics of the project that the command has printed."""
_STATE, _LIST, _TYPES = "mvbuild.state", "mvbuild.list", "mvbuild.resource_types"
_STORE, _INDIRECT = "mvbuild.store_failures", "mvbuild.indirect_selection"


def _remember(ctx: click.Context, param: click.Parameter, value: object) -> None:
    if value not in (None, "") and (value or param.name == "store_failures"):
        ctx.meta[f"mvbuild.{param.name}"] = value


def _color(ctx: click.Context, param: click.Parameter, value: bool | None) -> None:  # noqa: ARG001
    """The option, otherwise NO_COLOR of no-color.org; otherwise click decides by whether there is a terminal."""
    if value is None and os.environ.get("NO_COLOR") and ctx.color is None:
        value = False
    if value is not None:
        ctx.color = ctx.find_root().color = value


def _stay_offline(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001
    """Stored in the environment, where programs that call mvbuild set it: it is about the machine and not about the project."""
    if value:
        os.environ["MVBUILD_OFFLINE"] = "1"


def vars_of(text: str | None) -> Mapping[str, Any]:
    """`{a: 1}` or `a: 1`, as YAML."""
    if text is None:
        return {}
    import yaml

    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise click.UsageError(f"--vars must be a YAML mapping like '{{key: value}}', not {text!r}") from exc
    if not isinstance(value, dict):
        raise click.UsageError(f"--vars must be a YAML mapping like '{{key: value}}', not {text!r}")
    wrong = [key for key in value if not isinstance(key, str)]
    if wrong:
        raise click.UsageError(f"The keys of --vars must be names like 'key' in '{{key: value}}', not {wrong[0]!r}")
    return value


def env(*names: str) -> list[str]:
    """Every flag has its variable, under mvbuild's name and under dbt's, which orchestrators set."""
    return [f"{prefix}_{name}" for name in names for prefix in ("MVBUILD", "DBT")]


def _context_option(name: str, callback: Callable[[click.Context, click.Parameter, Any], None]) -> dict[str, Any]:
    """An option that no command gets as a parameter: its callback stores it in the context."""
    return {"envvar": env(name), "expose_value": False, "callback": callback}


def stores_failures() -> bool | None:
    """What --store-failures says; None if it was not given."""
    return remembered().get(_STORE)


def store_failures_as(last: object) -> None:
    """As in an earlier command, unless this one has the option."""
    if isinstance(last, bool):
        click.get_current_context().meta.setdefault(_STORE, last)


def store_option(command: F) -> F:
    """--store-failures, for commands that run data tests."""
    return click.option(
        "--store-failures/--no-store-failures",
        default=None,
        **_context_option("STORE_FAILURES", _remember),
        help="Write the rows that fail data tests to tables, or do not. Default: as each test is configured.",
    )(command)


_PROJECT = (
    click.option(
        "--project-dir",
        default=".",
        envvar=env("PROJECT_DIR"),
        show_default=True,
        help="Directory of mvbuild.yml.",
        shell_complete=proposals.directories,
    ),
    click.option(
        *("-t", "--target"),
        envvar=env("TARGET"),
        help="Target to use; see `targets:` in mvbuild.yml.",
        shell_complete=proposals.targets,
    ),
    click.option("--vars", envvar=env("VARS"), help="Values for var(), as YAML: '{key: value}'. They override mvbuild.yml."),
    click.option("--target-path", envvar=env("TARGET_PATH"), help="Output directory, instead of target/."),
    click.option(
        "--offline",
        is_flag=True,
        **_context_option("OFFLINE", _stay_offline),
        help="Download nothing: use only jars that are already cached.",
    ),
    # Orchestrators pass these to every command of dbt.
    *(
        click.option(
            name, metavar=value, expose_value=False, help="Accepted for compatibility with dbt, and ignored: targets are in mvbuild.yml."
        )
        for name, value in (("--profiles-dir", "DIR"), ("--profile", "NAME"))
    ),
)
_SELECTION = (
    click.option(
        *("-s", "--select", "-m", "--models", "--model", "select"),
        multiple=True,
        envvar=env("SELECT"),
        shell_complete=proposals.selections,
        help="Nodes to select: names, +name, name+, tag:x, path:x, state:modified+ and more; see docs/selection.md.",
    ),
    click.option(
        "--exclude",
        multiple=True,
        envvar=env("EXCLUDE"),
        help="Nodes to exclude; same grammar as --select.",
        shell_complete=proposals.selections,
    ),
    click.option("--selector", envvar=env("SELECTOR"), help="A named selection of selectors.yml.", shell_complete=proposals.selectors),
    click.option(
        *("--resource-type", "--resource-types", "resource_type"),
        type=click.Choice([*RESOURCE_TYPES, "all", "default"]),
        multiple=True,
        envvar=env("RESOURCE_TYPES"),
        help="Only resources of these types.",
    ),
    click.option(
        *("--exclude-resource-type", "--exclude-resource-types", "exclude_resource_type"),
        type=click.Choice(RESOURCE_TYPES),
        multiple=True,
        envvar=env("EXCLUDE_RESOURCE_TYPES"),
        help="Exclude resources of these types.",
    ),
    click.option(
        "--indirect-selection",
        type=click.Choice(["eager", "cautious", "buildable", "empty"]),
        **_context_option("INDIRECT_SELECTION", _remember),
        help="Which data tests to select: those that read a selected node (eager, the default), only selected nodes (cautious), only "
        "selected nodes and their ancestors (buildable), or only those that you name (empty).",
    ),
    click.option(
        "--state", **_context_option("STATE", _remember), help="What `state:` compares with: a directory of artifacts, or a git ref."
    ),
)
_OUTPUT = (
    click.option(
        "-q", "--quiet/--no-quiet", default=None, **_context_option("QUIET", _remember), help="Print only errors and the requested output."
    ),
    click.option(
        *("--use-colors/--no-use-colors", "--color/--no-color", "use_colors"),
        default=None,
        **_context_option("USE_COLORS", _color),
        help="Default: on if the output is a terminal.",
    ),
    click.option(
        "-d", "--debug/--no-debug", default=None, **_context_option("DEBUG", _remember), help="Show a full traceback for internal errors."
    ),
    click.option(
        "--warn-error", is_flag=True, **_context_option("WARN_ERROR", _remember), help="Treat warnings as errors, also those of data tests."
    ),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json", "debug", "default"]),
        metavar="[text|json]",
        **_context_option("LOG_FORMAT", _remember),
        help="json: messages and progress as JSON lines in the shape of dbt's logs. Default: text.",
    ),
    *(click.option(f"--{name}/--no-{name}", default=None, expose_value=False, hidden=True) for name in WITHOUT_MEANING),
)
