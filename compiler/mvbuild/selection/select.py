"""Graph + the text of --select and --exclude -> the ids of the selected nodes.

The grammar is dbt's: spaces make a union, commas an intersection; `+x`, `x+`, `2+x` and `@x` add nodes along the graph. As in dbt, a test
is selected with any node that it reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error, warning
from mvbuild.graph.exposures import exposures_of
from mvbuild.graph.model import Graph, ModelNode, NodeId, SeedNode, TableNode
from mvbuild.selection.grammar import Criterion, Difference, Expression, Intersection, Union, terms_of, union_of
from mvbuild.selection.known import Judge, Known
from mvbuild.selection.methods import find, items, kind_of, name_of, tags_of
from mvbuild.selection.selectors_file import Selector, read_selectors

_BLANK = warning(
    "unknown-selector",
    "The selection is empty: it selects nothing",
    help="A variable in it may be empty. Leave out --select to select everything.",
)
Selected = tuple[frozenset[NodeId], tuple[Diagnostic, ...]]


def select(graph: Graph, include: Iterable[str], exclude: Iterable[str], judge: Judge | None = None) -> Selected:
    """Node ids of models and seeds, and warnings for terms that match nothing. Without `include`: everything, or the default selector; a
    blank one selects nothing.

    `judge` returns the freshness of MVs, if the catalog was read.
    """
    include, exclude = terms_of(include), terms_of(exclude)
    has_nodes = {"model", "seed"}.issubset(graph.reading.resource_types or ("model", "seed"))
    if has_nodes and not (include or exclude or any(selector.default for selector in read_selectors(graph).values())):
        # Everything is selected: a run on 10,000 MVs need not look at their tests.
        return frozenset(id for id, node in graph.nodes.items() if isinstance(node, (ModelNode, SeedNode))), ()
    chosen, warnings = select_all(graph, include, exclude, judge)
    return frozenset(id for id in chosen if isinstance(graph.nodes.get(id), ModelNode | SeedNode)), warnings


def select_all(
    graph: Graph, include: Iterable[str], exclude: Iterable[str], judge: Judge | None = None, *, units: bool = False
) -> Selected:
    """Like `select`, with sources and data tests; with `units`, also unit tests and exposures."""
    include = terms_of(include)
    words, without = union_of(include), union_of(exclude)
    selection = _Selection(graph=graph, known=Known(judge), units=_models_of_units(graph) if units else {}, exposures=units)
    default = None if include or without.parts else next((s for s in selection.selectors.values() if s.default), None)
    everything = not include and default is None
    if everything:
        chosen = {*(i.id for i in items(graph)), *selection.units, *(one.id for one in (exposures_of(graph) if units else ()))}
    else:
        chosen = selection.of(default.definition if default else words)
        chosen |= selection.further_tests(chosen)
    if include and not words.parts:
        selection.warnings.append(_BLANK)
    if without.parts:
        chosen -= selection.of(without)
    if types := graph.reading.resource_types:
        chosen = {id for id in chosen if kind_of(id) in types}
    if not units:
        chosen = {id for id in chosen if not id.startswith("unit_test.")}
    return frozenset(chosen), tuple(selection.warnings)


@dataclass(kw_only=True)
class _Selection:
    """Evaluates expressions over one graph."""

    graph: Graph
    known: Known
    units: Mapping[str, NodeId] = field(default_factory=dict)
    """Unit test -> its model."""
    exposures: bool = False
    """Whether what is selected can have exposures."""
    warnings: list[Diagnostic] = field(default_factory=list)
    _selectors: Mapping[str, Selector] | None = None
    _open: list[str] = field(default_factory=list)
    """The selectors whose definitions are being followed."""

    @property
    def selectors(self) -> Mapping[str, Selector]:
        if self._selectors is None:
            self._selectors = read_selectors(self.graph)
        return self._selectors

    def of(self, expression: Expression) -> set[NodeId]:
        if isinstance(expression, Union):
            return set().union(*map(self.of, expression.parts))
        if isinstance(expression, Difference):
            return self.of(expression.left) - self.of(expression.right)
        if isinstance(expression, Intersection):
            parts = [self._criterion(p) if isinstance(p, Criterion) else self.of(p) for p in expression.parts]
            found = set.intersection(*parts) if parts else set()
            return self._warn_if_empty(found, expression.raw) if expression.raw else found
        return self._warn_if_empty(self._criterion(expression), expression.raw)

    def _criterion(self, criterion: Criterion) -> set[NodeId]:
        found = self._named(criterion) if criterion.method == "selector" else find(self.graph, self.known, criterion)
        reached = set(found)
        tests = {test.id: test.reads for test in self.graph.tests if test.id in found}
        if any(id.startswith("exposure.") for id in found):
            tests |= {one.id: one.reads for one in exposures_of(self.graph) if one.id in found}
        # A test or an exposure has no children; its parents are one step away.
        nodes = {id for id in found if id in self.graph.nodes}
        if criterion.parents:
            depth = criterion.parents_depth
            if tests and depth != 0:
                read = {id for reads in tests.values() for id in reads}
                reached |= read | self.graph.ancestors(read, None if depth is None else depth - 1)
            reached |= self.graph.ancestors(nodes, depth)
        if criterion.children:
            reached |= self.graph.descendants(nodes, criterion.children_depth)
        if criterion.childrens_parents:
            reached |= self.graph.descendants(nodes)
            reached |= self.graph.ancestors(reached & self.graph.nodes.keys())
        if self.exposures and (criterion.children or criterion.childrens_parents):
            reached |= {one.id for one in exposures_of(self.graph) if not reached.isdisjoint(one.reads)}
        return self._with_tests(reached)

    def _with_tests(self, chosen: set[NodeId]) -> set[NodeId]:
        if self.graph.reading.indirect == "empty":
            return chosen
        units = {id for id, model in self.units.items() if model in chosen}
        if self.graph.reading.indirect != "eager":
            return chosen | units
        return chosen | units | {test.id for test in self.graph.tests if not chosen.isdisjoint(test.reads)}

    def further_tests(self, chosen: set[NodeId]) -> set[NodeId]:
        """The tests that read nothing but what the whole selection has, or can build."""
        if self.graph.reading.indirect not in ("cautious", "buildable"):
            return set()
        nodes = chosen & self.graph.nodes.keys()
        known = nodes | self.graph.ancestors(nodes) if self.graph.reading.indirect == "buildable" else nodes
        return {test.id for test in self.graph.tests if not nodes.isdisjoint(test.reads) and known.issuperset(test.reads)}

    def _named(self, criterion: Criterion) -> set[NodeId]:
        """The selection of a selector in selectors.yml."""
        selector = self.selectors.get(criterion.value)
        if selector is None:
            message = f"Unknown selector '{criterion.value}'"
            help = did_you_mean(criterion.value, self.selectors) or "Selectors are defined in selectors.yml beside mvbuild.yml."
            raise ProjectError([error("unknown-selector", message, criterion.span, help=help)])
        if selector.name in self._open:
            circle = " -> ".join([*self._open[self._open.index(selector.name) :], selector.name])
            raise ProjectError([error("bad-selectors", f"Selectors form a cycle: {circle}", criterion.span or selector.span)])
        self._open.append(selector.name)
        found = self.of(selector.definition)
        self._open.pop()
        return found

    def _warn_if_empty(self, found: set[NodeId], raw: str) -> set[NodeId]:
        if not found and not self._is_question(raw):
            near = did_you_mean(_bare(raw), _selectable(self.graph))
            self.warnings.append(warning("unknown-selector", f"'{raw}' selects nothing", help=near if near.startswith("Did") else ""))
        return found

    def _is_question(self, raw: str) -> bool:
        """Whether an empty result is valid: nothing stale, or nothing modified."""
        methods = [term.lstrip("+@0123456789").partition(":")[0] for term in raw.split(",")]
        return any(method in ("state", "result", "fresh", "stale", "git") for method in methods)


def _models_of_units(graph: Graph) -> dict[str, NodeId]:
    project = graph.project.name
    return {test.id(project): f"model.{project}.{test.model}" for test in graph.unit_tests}


def _bare(raw: str) -> str:
    """`2+daily+1` -> `daily`, `@daily` -> `daily`."""
    return re.sub(r"\+\d*$", "", re.sub(r"^(?:@|\d*\+)", "", raw))


def _selectable(graph: Graph) -> Iterator[str]:
    """Words that may have been meant: names, names in the catalog, sources and tags."""
    for item in items(graph):
        yield name_of(item)
        if isinstance(item, TableNode) and item.source is not None:
            yield f"source:{item.source.source}.{item.source.name}"
        if isinstance(item, ModelNode | SeedNode):
            yield item.identifier.dotted
        yield from (f"tag:{tag}" for tag in tags_of(item))
