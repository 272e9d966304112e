"""a project and the buffers of an editor -> Checked: its diagnostics, and its graph and columns if it compiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from mvbuild import api
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.graph.model import Graph
from mvbuild.lineage.model import Bound
from mvbuild.lint.check import lint
from mvbuild.lint.facts import Facts
from mvbuild.lint.model import Finding
from mvbuild.lsp.mirror import mirrored
from mvbuild.project.setting import EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """How projects are read, as chosen in the editor or on the command line."""

    target: str | None = None
    vars: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    freshness: bool = True
    """Whether the catalog is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """`graph` and `bound` are None if the project does not compile."""

    diagnostics: tuple[Diagnostic, ...]
    graph: Graph | None = None
    bound: Bound | None = None
    fixable: tuple[Finding, ...] = ()
    """Findings in open files that have a fix."""


def check(root: Path, buffers: Mapping[str, str], choices: CheckOptions) -> Checked:
    """`buffers`: path in the project -> text, for open files: these are linted. No catalog, no Spark."""
    try:
        with mirrored(root, buffers) as place:
            return _checked(place, frozenset(buffers), choices)
    except ProjectError as exc:
        return Checked(diagnostics=exc.diagnostics)
    except Exception as exc:  # noqa: BLE001 - an editor must not lose its server to one project
        return Checked(
            diagnostics=(error("internal", f"mvbuild failed with {type(exc).__name__}", help="Run `mvbuild compile` to see why."),)
        )


def _checked(place: Path, opened: frozenset[str], choices: CheckOptions) -> Checked:
    graph = api.compile(place, target=choices.target, vars=choices.vars)
    bound = api.bound(graph)
    findings, wrong = _linted(graph, bound, opened)
    found = (*graph.problems, *graph.warnings, *bound.diagnostics, *wrong, *(finding.diagnostic for finding in findings))
    fixable = tuple(finding for finding in findings if finding.found.fix is not None)
    return Checked(diagnostics=found, graph=graph, bound=bound, fixable=fixable)


def _linted(graph: Graph, bound: Bound, opened: frozenset[str]) -> tuple[tuple[Finding, ...], tuple[Diagnostic, ...]]:
    """Only open files, because a large project has too many findings to show at once."""
    selected = frozenset(node.id for node in graph.models if node.model.file.path in opened)
    whole = any(path.endswith((".yml", ".yaml")) for path in opened)
    try:
        report = lint(Facts(graph=graph, selected=selected, columns=bound.columns), whole=whole)
    except ProjectError as exc:
        return (), exc.diagnostics
    return tuple(f for f in report.findings if f.span.file.path in opened), ()
