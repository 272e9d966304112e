"""project, branch -> what the branch has, and how it differs from main; published or dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mvbuild.api.of_project import Project, graph_of
from mvbuild.api.sessions import OnEvent, catalog_of, explained, ignore_event, main_catalog_of, observed, open_session
from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error
from mvbuild.formats import failed_tests
from mvbuild.graph.model import Graph, ModelNode, NodeId, SeedNode
from mvbuild.lifecycle.branches import OnBranch, branches, checked_name, on_branch, publish_branch
from mvbuild.lifecycle.branches import drop_branch as forget_branch
from mvbuild.plan.renames import beside_former
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.states import TableState
from mvbuild.selection.select import select as select_nodes
from mvbuild.storage.names import former_states
from mvbuild.verify.row_keys import row_key

if TYPE_CHECKING:
    from mvbuild.verify.comparison import Comparison


def branch_contents(project: Project, branch: str) -> tuple[OnBranch, ...]:
    """What a branch has of the project's tables and views. Raises ProjectError if it has nothing. Does not need Spark."""
    graph = graph_of(project)
    with explained(graph):
        found = on_branch(graph, main_catalog_of(graph), checked_name(branch))
    if not found:
        known = branch_names(graph)
        help = did_you_mean(branch, known) if known else "`mvbuild run --branch` creates one."
        raise ProjectError([error("unknown-branch", f"The project has no branch '{branch}'", help=help)])
    return found


def branch_names(project: Project = ".") -> tuple[str, ...]:
    """The branches that have something of the project. Does not need Spark."""
    graph = graph_of(project)
    with explained(graph):
        return branches(graph, main_catalog_of(graph))


def publish(project: Project, branch: str) -> tuple[OnBranch, ...]:
    """Make what a branch has current, in one commit if the catalog can. Does not need Spark."""
    graph = _with_known_names(project)
    found = branch_contents(graph, branch)
    catalog = main_catalog_of(graph)
    with explained(graph):
        wrong = (
            *_failed(graph, found, branch),
            *_renamed(graph, found, catalog, branch),
            *_without_upstream(graph, found, catalog, branch),
        )
        if wrong:
            raise ProjectError(wrong)
        publish_branch(catalog, branch, found)
    return found


def _require_columns(key: Iterable[str], compared: Iterable[OnBranch]) -> None:
    """Raises ProjectError for a column that no compared table has: rows would be compared as wholes."""
    tables = [state for one in compared for state in (one.main, one.branch) if isinstance(state, TableState)]
    columns = {field["name"].lower(): field["name"] for table in tables for field in table.schema["fields"]}
    unknown = [name for name in dict.fromkeys(key) if name.lower() not in columns]
    if tables and unknown:
        several = len({table.identifier for table in tables}) > 1
        what = "No compared table has a column" if several else f"{tables[0].identifier} has no column"
        raise ProjectError(
            [error("unknown-column", f"{what} '{name}' of --key", help=did_you_mean(name, columns.values())) for name in unknown]
        )


def _failed(graph: Graph, found: Iterable[OnBranch], branch: str) -> Iterator[Diagnostic]:
    """MVs whose newest rows failed their tests on the branch, which still has the rows before."""
    for one in found:
        known = one.main.properties.get(failed_tests.KEY) if one.main is not None else None
        if one.branch is None or one.branch.properties.get(failed_tests.KEY, known) == known:
            continue
        failed, node = failed_tests.decode(one.branch.properties), graph.nodes[one.node]
        tests = f": {', '.join(failed.tests)}" if failed is not None and failed.tests else ""
        span = node.model.file.line_span(1) if isinstance(node, ModelNode) else None
        message = f"the newest rows of {node.identifier} failed their data tests on branch '{branch}'{tests}"
        yield error("not-published", message, span, help=f"Fix the rows or the test, and run with --branch {branch} again.")


def _renamed(graph: Graph, found: Iterable[OnBranch], catalog: Catalog, branch: str) -> Iterator[Diagnostic]:
    """Models that are new on the branch, and that `previous_name` makes of others."""
    new = {one.node for one in found if one.standing == "new"}
    for node, view in beside_former(graph, former_states(graph, {}, catalog)):
        if node.id in new:
            message = f"'{node.model.name}' is {view.identifier} under a new name; publishing would make it a second MV"
            help = f"`mvbuild branch drop {branch}`, run without --branch to rename it, and build the branch again."
            yield error("bad-previous-name", message, node.model.config.spans.get("previous_name"), help=help)


def _without_upstream(graph: Graph, found: Iterable[OnBranch], catalog: Catalog, branch: str) -> Iterator[Diagnostic]:
    """Models of the branch that read a part of the project which was dropped since: neither `main` nor the branch has it."""
    on_branch = {one.identifier for one in found}
    reads = {(one.node, above.identifier): None for one in found for above in _upstream(graph, one.node)}
    gone = {read for _, read in reads} - on_branch
    gone -= catalog.load(gone).keys()
    for id, read in reads:
        if read in gone:
            node = graph.model(id)
            message = f"{node.identifier} reads {read}, which was dropped after branch '{branch}' was built"
            yield error("branch-outdated", message, node.model.file.line_span(1), help=f"Run with --branch {branch} again.")


def _upstream(graph: Graph, id: NodeId) -> Iterator[ModelNode | SeedNode]:
    """The seeds, MVs and views that a node reads, itself or through ephemeral models."""
    for above in (graph.nodes.get(read) for read in graph.nodes[id].reads):
        if isinstance(above, ModelNode) and above.materialized == "ephemeral":
            yield from _upstream(graph, above.id)
        elif isinstance(above, ModelNode | SeedNode):
            yield above


def _with_known_names(project: Project) -> Graph:
    """Raises ProjectError if a model may have another name than it seems to have: a part of the branch would be left out."""
    graph = graph_of(project)
    wrong = [d for node in graph.models if not node.model.knows_settings for d in node.model.problems]
    if wrong:
        raise ProjectError(wrong)
    return graph


def drop_branch(project: Project, branch: str) -> tuple[tuple[OnBranch, ...], int]:
    """Drop a branch. Returns how many files were deleted with tables that only it had. Does not need Spark."""
    graph = _with_known_names(project)
    found = branch_contents(graph, branch)
    with explained(graph):
        return found, forget_branch(main_catalog_of(graph), branch, found)


def diff(
    project: Project,
    branch: str,
    *,
    select: Iterable[str] = (),
    exclude: Iterable[str] = (),
    key: Sequence[str] = (),
    limit: int = 10,
    spark: Any = None,
    on_event: OnEvent = ignore_event,
) -> tuple[Comparison, ...]:
    """How the rows of a branch differ from those of `main`, for each MV and seed that it has. `key` replaces the key that the models
    give."""
    from mvbuild.verify.comparison import compare

    graph = graph_of(project)
    found = branch_contents(graph, branch)
    chosen, _ = select_nodes(graph, select, exclude)
    old = [one for one in found if one.standing == "outdated" and one.node in chosen]
    if old:
        help = f"Run with --branch {branch} again."
        raise ProjectError(
            [error("branch-outdated", f"{o.identifier} has changed since branch '{branch}' was built", help=help) for o in old]
        )
    _require_columns(key, [one for one in found if one.node in chosen])
    catalog = catalog_of(replace(graph, project=replace(graph.project, branch=branch)))
    done = []
    with open_session(observed(graph, catalog, spark), catalog, spark, on_event) as session, explained(graph):
        for one in found:
            after = one.branch
            if one.node not in chosen or not isinstance(after, TableState) or after.current_snapshot_id is None:
                continue
            before = one.main if isinstance(one.main, TableState) else None
            keys = tuple(key) or row_key(graph, one.node)
            done.append(compare(session, before, after, keys, limit=limit))
    return tuple(done)
