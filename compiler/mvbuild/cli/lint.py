"""`mvbuild lint`: suspicious SQL and YAML in models, without a catalog and without Spark."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from mvbuild.cli.options import ListCommand, Options, project_options, selection_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mvbuild.diagnostics import Diagnostic
    from mvbuild.graph.model import Graph, ModelNode
    from mvbuild.lint.check import Report
    from mvbuild.lint.model import Finding


@click.command("lint", cls=ListCommand)
@click.argument("files", nargs=-1, type=click.Path())
@project_options
@selection_options
@click.option("--rule", "rules", multiple=True, metavar="RULE", help="Run only these rules, including rules that are off by default.")
@click.option("--fix", is_flag=True, help="Fix in place what can be fixed safely.")
@click.option("--catalog", is_flag=True, help="Also read the catalog: schemas of base tables and sizes of storage tables.")
@click.option("--output", type=click.Choice(["text", "json", "github", "gitlab", "sarif"]), default="text", show_default=True)
@click.option(
    "--fail-on", type=click.Choice(["error", "warning"]), default="error", show_default=True, help="The lowest level that sets exit code 1."
)
def command(
    options: Options,
    files: tuple[str, ...],
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    rules: tuple[str, ...],
    fix: bool,
    catalog: bool,
    output: str,
    fail_on: str,
) -> int:
    """Report suspicious SQL and YAML in models; with FILES, only in these and in the models that they describe. Needs no catalog and no
    Spark. Findings go to stdout."""
    from mvbuild.cli.output import report, say
    from mvbuild.diagnostics import ProjectError
    from mvbuild.lineage.check import column_findings
    from mvbuild.lint.model import LEVELS

    if files and (select or exclude):
        raise click.UsageError("FILES cannot be combined with --select or --exclude")
    missing = next((file for file in files if not os.path.lexists(file)), None)
    if missing is not None:
        raise click.UsageError(f"File '{missing}' does not exist. FILES are paths; choose models by name with --select")
    own = _paths_in(options.project_dir, files) if files else None
    asked = _Asked(options, select, exclude, tuple(r for text in rules for r in text.replace(",", " ").split()), catalog, own)
    try:
        graph = options.graph()
        if fix:
            from mvbuild.lint.fixing import fix_all

            fixed = fix_all(graph, lambda g: asked.report(g)[0].findings, asked.recompile, os.environ)
            graph = fixed.graph
            for path, count in sorted(fixed.counts.items()):
                say(f"fixed {count} finding{'s' * (count != 1)} in {path}")
        found, warnings = asked.report(graph)
        report(warnings)
        named = [d for d in warnings if d.severity == "error"]
        said = {(d.code, d.message) for d in named}
        in_columns = [d for d in column_findings(graph) if d.severity == "error" and (d.code, d.message) not in said]
        units = _of_unit_tests(graph)
        report((*in_columns, *units))
        wrong = (*graph.problems, *named, *in_columns, *units)
    except ProjectError as exc:
        if output != "text":
            _print(output, (), options.project_dir, exc.diagnostics)
        raise
    _print(output, found.findings, options.project_dir, wrong if output != "text" else ())
    say(_total(found))
    if wrong:
        return 2
    return 1 if found.fails(next(level for level in LEVELS if level == fail_on)) else 0


def _of_unit_tests(graph: Graph) -> tuple[Diagnostic, ...]:
    from mvbuild.artifacts.earlier import has_unit_tests

    if not has_unit_tests(graph):
        return ()
    from mvbuild.unit_tests.query import wrong_unit_tests

    return wrong_unit_tests(graph)


class _Asked:
    """What the command line requests for each version of the project."""

    def __init__(
        self,
        options: Options,
        select: Sequence[str],
        exclude: Sequence[str],
        rules: Sequence[str],
        catalog: bool,
        files: frozenset[str] | None,
    ) -> None:
        self._options, self._files = options, files
        self._select, self._exclude = tuple(select), tuple(exclude)
        self._rules, self._catalog = rules, catalog

    def recompile(self) -> Graph:
        from mvbuild.api import compilation

        options = self._options
        return compilation.compile(options.project_dir, target=options.target, vars=options.vars, target_path=options.target_path)

    def report(self, graph: Graph) -> tuple[Report, Sequence[Diagnostic]]:
        """The report, including diagnostics of the selection, of tests and settings that name missing columns, and of duplicate columns."""
        from mvbuild.lineage.named import misnamed
        from mvbuild.lint.check import lint
        from mvbuild.lint.facts import Facts
        from mvbuild.lint.known_columns import bound_columns
        from mvbuild.selection.select import select

        world = None
        if self._catalog:
            from mvbuild.api.sessions import catalog_of, observed

            world = observed(graph, catalog_of(graph))
            graph = world.graph
        chosen, warnings = select(graph, self._select, self._exclude)
        files = self._files
        if files is not None:
            chosen = frozenset(n.id for n in _candidates(graph, files) if {n.model.file.path, n.model.properties.patch_path} & files)
        bound = bound_columns(graph, chosen, world)
        columns = bound.columns
        wrong = misnamed(graph, lambda id: [c.name for c in columns[id]] if id in columns else None, chosen)
        warnings = (*warnings, *wrong, *(d for d in bound.diagnostics if d.code == "duplicate-column"))
        facts = Facts(graph=graph, selected=chosen, columns=columns, world=world)
        found = lint(facts, rules=self._rules, whole=not (self._select or self._exclude))
        if files is None:
            return found, warnings
        return replace(found, findings=tuple(f for f in found.findings if f.span.file.path in files or f.node in chosen)), warnings


def _candidates(graph: Graph, files: Iterable[str]) -> Iterable[ModelNode]:
    """All models for a YAML file. A SQL file is matched by its name, so that no other model has to be read."""
    stems = {PurePosixPath(path).stem for path in files if path.endswith(".sql")}
    return (
        [n for n in graph.models if PurePosixPath(n.model.file.path).stem in stems]
        if all(path.endswith(".sql") for path in files)
        else graph.models
    )


def _print(output: str, findings: Sequence[Finding], project: Path, failures: Sequence[Diagnostic] = ()) -> None:
    from mvbuild import __version__
    from mvbuild.cli.output import colored
    from mvbuild.diagnostics.render import to_text
    from mvbuild.lint import output as written

    folder, root = _within_repository(project)
    if output == "json":
        text = written.to_json(findings, failures)
    elif output == "github":
        text = written.to_github(findings, failures, folder=folder)
    elif output == "gitlab":
        text = written.to_gitlab(findings, failures, folder=folder)
    elif output == "sarif":
        text = written.to_sarif(findings, failures, version=__version__, folder=folder, root=root.as_uri() + "/")
    else:
        text = colored(to_text(f.diagnostic for f in sorted(findings, key=lambda f: f.level != "error")))
    if text:
        click.echo(text)


def _paths_in(project: Path, files: Sequence[str]) -> frozenset[str]:
    """The files by their path in the project, for those that are in it."""
    root = project.resolve()
    found = [Path(file).parent.resolve() / Path(file).name for file in files]
    return frozenset(path.relative_to(root).as_posix() for path in found if path.is_relative_to(root))


def _within_repository(project: Path) -> tuple[str, Path]:
    """The path from the repository to the project, such as `shop/`, and the repository: annotations use paths from the repository."""
    here = project.resolve()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    relative = here.relative_to(root).as_posix()
    return ("" if relative == "." else f"{relative}/"), root


def _total(found: Report) -> str:
    """The last line of the text output."""
    numbers = [(found.count("error"), "error"), (found.count("warning"), "warning"), (found.count("info"), "remark")]
    parts = [f"{n} {word}{'s' * (n != 1)}" for n, word in numbers if n]
    fixable = sum(finding.found.fix is not None for finding in found.findings)
    models = f"{found.models} model{'s' * (found.models != 1)}"
    if not parts:
        return f"No findings in {models}."
    more = f" {fixable} fixable with --fix." if fixable else ""
    return f"Found {', '.join(parts)} in {models}.{more}"
