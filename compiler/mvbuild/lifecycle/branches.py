"""Graph + a branch -> what it has, and a catalog in which that is published or dropped: branches as environments.

A branch of a project is the Iceberg branch of that name in every table that a run with --branch built, and a version of every view that it
changed (decision 009).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.graph.model import Graph, ModelNode, NodeId, SeedNode
from mvbuild.lifecycle.drop import everything, shares_directory, tables_of
from mvbuild.names import TableIdentifier
from mvbuild.ports.catalog import Catalog
from mvbuild.ports.commits import BRANCH_PROPERTY, BranchCommit, DropCommit
from mvbuild.ports.states import State, TableState, ViewState

Standing = Literal["changed", "new", "outdated"]


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class OnBranch:
    """What a branch has of one table or view."""

    node: NodeId
    identifier: TableIdentifier
    standing: Standing
    """`new` if there is no `main`; `outdated` if `main` changed after the branch was built."""
    main: TableState | ViewState | None
    branch: TableState | ViewState | None
    """None if it is outdated."""


def checked_name(branch: str) -> str:
    """Raise ProjectError for a name that a branch of a project cannot have."""
    if not _NAME.match(branch) or branch == "main" or branch.startswith("mvbuild_"):
        message = f"'{branch}' is not a valid name of a branch"
        help = "Use letters, digits and . _ / -. `main` is the published state, and names that contain mvbuild_ are reserved."
        raise ProjectError([error("command-line", message, help=help)])
    return branch


def on_branch(graph: Graph, catalog: Catalog, branch: str) -> tuple[OnBranch, ...]:
    """Seeds, views and storages of the project, in the order of the graph."""
    wanted = dict(_entries(graph))
    main = catalog.load(wanted)
    seen = catalog.on_branch(branch).load(wanted)
    found = (_one(node, i, main.get(i), seen.get(i), branch) for i, node in wanted.items())
    return tuple(one for one in found if one is not None)


def branches(graph: Graph, catalog: Catalog) -> tuple[str, ...]:
    """The names of all branches that have something of the project. A branch with only new views cannot be found."""
    found = catalog.load(dict(_entries(graph)))
    states = (s for s in found.values() if isinstance(s, TableState | ViewState))
    names = {key.removeprefix(BRANCH_PROPERTY) for s in states for key in s.properties if key.startswith(BRANCH_PROPERTY)}
    return tuple(sorted(names))


def publish_branch(catalog: Catalog, branch: str, found: Sequence[OnBranch]) -> None:
    """Make what the branch has current, in one commit if the catalog can. Raises ProjectError, and changes nothing, if a part is
    outdated."""
    old = [one for one in found if one.standing == "outdated"]
    if old:
        raise ProjectError([_outdated(one, branch) for one in old])
    namespaces = dict.fromkeys(one.identifier.namespace for one in found if one.main is None)
    for namespace in namespaces:
        catalog.ensure_namespace(namespace)
    catalog.commit([BranchCommit(identifier=one.identifier, branch=branch, to="publish") for one in found])


def drop_branch(catalog: Catalog, branch: str, found: Sequence[OnBranch]) -> int:
    """Drop the branch, and delete the files of tables that only it had. Returns how many files there were."""
    tables = [one.branch or one.main for one in found if one.standing == "new" or _is_bare(one.main)]
    gone = [t for t in tables if isinstance(t, TableState) and not _other_branches(t, branch)]
    files = _files(catalog, gone)
    names = {t.identifier for t in gone}
    drops = [DropCommit(identifier=t.identifier, expect_metadata_location=t.metadata_location) for t in gone]
    forgets = [BranchCommit(identifier=one.identifier, branch=branch, to="drop") for one in found if one.identifier not in names]
    catalog.commit([*drops, *forgets])
    return catalog.files.delete(files)


def _entries(graph: Graph) -> Iterable[tuple[TableIdentifier, NodeId]]:
    for node in graph.nodes.values():
        if isinstance(node, SeedNode):
            yield node.identifier, node.id
        elif isinstance(node, ModelNode) and node.materialized != "ephemeral":
            if node.storage is not None:
                yield node.storage, node.id
            yield node.identifier, node.id


def _one(node: NodeId, identifier: TableIdentifier, main: State | None, seen: State | None, branch: str) -> OnBranch | None:
    if not isinstance(main, TableState | ViewState | None) or not isinstance(seen, TableState | ViewState | None):
        return None
    if main is None:
        return OnBranch(node=node, identifier=identifier, standing="new", main=None, branch=seen) if seen is not None else None
    note = main.properties.get(BRANCH_PROPERTY + branch)
    if note is None:
        return None
    if not _holds(note, main, branch):
        return OnBranch(node=node, identifier=identifier, standing="outdated", main=main, branch=None)
    standing: Standing = "new" if _is_bare(main) else "changed"
    return OnBranch(node=node, identifier=identifier, standing=standing, main=main, branch=seen)


def _is_bare(state: State | None) -> bool:
    """Whether a table has nothing on `main`."""
    return isinstance(state, TableState) and state.current_snapshot_id is None


def _holds(note: str, main: TableState | ViewState, branch: str) -> bool:
    """Whether `main` is still what the branch was built on, and a table still has the branch."""
    with suppress(ValueError, TypeError, AttributeError, KeyError):
        found = json.loads(note)
        if isinstance(main, ViewState):
            return bool(found["base"] == main.version_id)
        return found["base"] == main.current_snapshot_id and (found["head"] is None or branch in main.branches)
    return False


def _other_branches(table: TableState, branch: str) -> bool:
    return any(key.startswith(BRANCH_PROPERTY) and key != BRANCH_PROPERTY + branch for key in table.properties)


def _files(catalog: Catalog, gone: Sequence[TableState]) -> set[str]:
    """The files that only the removed tables refer to."""
    if not gone:
        return set()
    names = {t.identifier for t in gone}
    others = [s for s in everything(catalog, {i.namespace for i in names}) if s.identifier not in names]
    files = {file for table in gone for file in catalog.files.of(table)}
    for table in tables_of(others):
        if shares_directory(table.location, gone):
            files -= catalog.files.of(table)
    return files


def _outdated(one: OnBranch, branch: str) -> Diagnostic:
    return error("branch-outdated", f"{one.identifier} has changed since branch '{branch}' was built")
