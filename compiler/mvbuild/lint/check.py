"""Facts -> Report: every rule on every selected model and file, at its level, without what is allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from mvbuild.dataclass import dataclass
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.lint.allowances import Judged, allowances, applied, judged
from mvbuild.lint.facts import Facts
from mvbuild.lint.hidden import without_secrets
from mvbuild.lint.levels import Levels, levels_of
from mvbuild.lint.model import LEVELS, Finding, Found, Level, Rule
from mvbuild.lint.rules import BY_CODE, RULES
from mvbuild.source import SourceFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings, in the order of the files. Spans in files with secrets refer to copies in which stars replace the secrets."""

    findings: tuple[Finding, ...]
    models: int
    """How many models were checked."""

    def count(self, level: Level) -> int:
        return sum(finding.level == level for finding in self.findings)

    def fails(self, least: Level) -> bool:
        """Whether there is a finding at this level or above."""
        return any(LEVELS.index(finding.level) >= LEVELS.index(least) for finding in self.findings)


def lint(facts: Facts, *, rules: Collection[str] = (), whole: bool = True) -> Report:
    """`rules`: codes of the rules to run; without codes, all that are not off. `whole`: check also files that belong to no model.

    Raises ProjectError if `lint:` names rules, levels or options that do not exist.
    """
    nodes = [node for node in facts.graph.models if node.id in facts.selected and node.id not in facts.graph.undefined]
    levels = levels_of(facts.graph, nodes, rules)
    found = _once([*_of_models(facts, levels, nodes), *_of_files(facts.graph, levels, nodes, whole)])
    files = _files(facts.graph, nodes, whole)
    known = {path: allowances(file) for path, file in {**files, **{f.span.file.path: f.span.file for f in found}}.items()}
    left, used = applied(found, known, {node.id: node.model.file.path for node in nodes})
    ran = {node.model.file.path: _ran(facts, levels, node) for node in nodes}
    ran_elsewhere = frozenset.intersection(*ran.values()) if ran else _ran(facts, levels, None)
    own = {node.model.file.path: node for node in nodes}
    wrong = [Judged(file=file, allowances=known[path], ran=ran.get(path, ran_elsewhere)) for path, file in files.items()]
    for code, one in judged(wrong, used):
        rule, node = BY_CODE[code], own.get(one.span.file.path)
        left.append(Finding(code=code, level=levels.level(rule, node), found=_helped(rule, one), node=node.id if node else None))
    shown = sorted((f for f in left if f.level != "off"), key=lambda f: (f.span.file.path, f.span.start, f.code))
    return Report(findings=without_secrets(shown), models=len(nodes))


def _of_models(facts: Facts, levels: Levels, nodes: Iterable[ModelNode]) -> Iterator[Finding]:
    for node in nodes:
        for rule in RULES:
            level = levels.level(rule, node)
            if level != "off" and rule.check is not None:
                for found in _found(rule.check(facts, node, levels.options(rule, node))):
                    yield Finding(code=rule.code, level=level, found=_helped(rule, found), node=node.id)


def _found(findings: Iterable[Found]) -> list[Found]:
    """Nothing is reported for a query that is nested too deeply."""
    try:
        return list(findings)
    except RecursionError:
        return []


def _of_files(graph: Graph, levels: Levels, nodes: Iterable[ModelNode], whole: bool) -> Iterator[Finding]:
    own = {node.model.file.path: node for node in nodes}
    for rule in RULES:
        for path, file in _files(graph, own.values(), whole).items() if rule.check_file else ():
            node = own.get(path)
            level = levels.level(rule, node)
            if level != "off" and rule.check_file is not None:
                for found in rule.check_file(file):
                    yield Finding(code=rule.code, level=level, found=_helped(rule, found), node=node.id if node else None)


def _files(graph: Graph, nodes: Iterable[ModelNode], whole: bool) -> Mapping[str, SourceFile]:
    """Path -> file, for the models and, if nothing was selected, for all other files."""
    project = graph.project
    others = (project.file, *project.documents, *project.macros, *project.tests) if whole else ()
    return {file.path: file for file in (*(node.model.file for node in nodes), *others)}


def _ran(facts: Facts, levels: Levels, node: ModelNode | None) -> frozenset[str]:
    """The rules that would have reported a finding: not those that are off, nor those that lack information."""
    return frozenset(rule.code for rule in RULES if levels.level(rule, node) != "off" and _knows(facts, rule, node))


def _knows(facts: Facts, rule: Rule, node: ModelNode | None) -> bool:
    if rule.needs == "catalog":
        return facts.world is not None
    if rule.needs == "types":
        return node is not None and all(_is_typed(facts, read) for read in node.reads)
    return rule.check is not None or rule.check_file is not None


def _is_typed(facts: Facts, node: NodeId) -> bool:
    columns = facts.columns.get(node)
    return columns is not None and all(column.type for column in columns)


def _helped(rule: Rule, found: Found) -> Found:
    return found if found.help else replace(found, help=rule.help)


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Text that a template's loop writes many times appears once in the file."""
    found: dict[tuple[str, str, int, int, str], Finding] = {}
    for finding in findings:
        span = finding.span
        found.setdefault((finding.code, span.file.path, span.start, span.end, finding.found.message), finding)
    return list(found.values())
