"""Graph + a directory, a manifest or a git ref -> the Version of the project in it, and what differs from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from mvbuild.diagnostics import Note, ProjectError, error
from mvbuild.git import Commit, checked_out, commit_of
from mvbuild.graph.definition import replace_reads
from mvbuild.graph.model import Graph, NodeId
from mvbuild.graph.resolve import build
from mvbuild.names import quote
from mvbuild.parse.fingerprint import fingerprint
from mvbuild.parse.model import Read
from mvbuild.parse.project import parse_project, parse_text
from mvbuild.project.load import load, open_project
from mvbuild.source import MappedText
from mvbuild.versions.manifest import read_manifest
from mvbuild.versions.model import NodeVersion, Version, version_of
from mvbuild.workers import Workers

MANIFEST = "manifest.json"
Kind = Literal["body", "configs", "relation", "persisted_descriptions", "macros", "contract"]
KINDS: tuple[Kind, ...] = ("body", "configs", "relation", "persisted_descriptions", "macros", "contract")


def other_version(graph: Graph, text: str) -> Version:
    """The version that `text` names: a directory with a manifest.json, such a file, or a git ref. Raises ProjectError if it cannot be
    read."""
    with opened(graph, text) as (version, _):
        return version


@contextmanager
def opened(graph: Graph, text: str) -> Iterator[tuple[Version, Graph | None]]:
    """The same, with its graph if it was compiled; the compiled files are deleted afterwards."""
    path = manifest_path(graph.project.root, text)
    if path is not None:
        yield read_manifest(path, text), None
        return
    with _at_commit(graph, _commit(graph, text)) as found:
        yield found


def _commit(graph: Graph, text: str) -> Commit:
    if text.endswith(".json"):
        raise ProjectError([error("bad-state", f"The file {text} does not exist")])
    try:
        return commit_of(graph.project.root, text)
    except ProjectError as exc:
        if any(one.is_dir() for one in places_of(graph.project.root, text)):
            message = f"'{text}' is a directory without a {MANIFEST}, and not a git ref"
            raise ProjectError([error("bad-state", message)]) from exc
        raise


def manifest_path(root: Path, text: str) -> Path | None:
    """The manifest that a path names, relative to the current directory or the project."""
    for place in places_of(root, text):
        for path in (place / MANIFEST, place):
            if path.is_file():
                return path
    return None


def places_of(root: Path, text: str) -> tuple[Path, ...]:
    """The possible locations of a path on the command line."""
    return (Path(text), root / text)


@contextmanager
def _at_commit(graph: Graph, commit: Commit) -> Iterator[tuple[Version, Graph | None]]:
    """The project compiled as of a commit, for the same target, vars and environment. Empty if it did not exist then."""
    reading = graph.reading
    with checked_out(commit) as root:
        if root is None or not _is_project(root):
            yield Version(name=commit.ref, nodes={}, macros={}, vars={}, is_missing=True), None
            return
        try:
            there = open_project(root, target=reading.target, vars=reading.vars, env=reading.env)
            with Workers() as workers:
                # Most of its files are the same as now.
                project = load(replace(there, cache=graph.project.cache), workers)
                parsed = parse_project(project, env=reading.env, workers=workers)
            former = replace(build(project, parsed), reading=reading)
            if former.problems:
                raise ProjectError(former.problems)
            version = version_of(former, commit.ref)
        except ProjectError as exc:
            first, *others = exc.diagnostics
            more = f", and {len(others)} more error{'s' * (len(others) > 1)}" if others else ""
            message = f"The project at '{commit.ref}' does not compile: {first.message}{more}"
            notes = [Note(message=f"{d.code}: {d.message}", span=d.span) for d in exc.diagnostics[:5]]
            raise ProjectError([error("bad-state", message, notes=notes, help="Choose a ref that compiles.")]) from exc
        yield version, former


def _is_project(root: Path) -> bool:
    return any((root / name).is_file() for name in ("mvbuild.yml", "mvbuild.yaml", "dbt_project.yml"))


# --- differences -------------------------------------------------------------------------------------------------------------------


def all_modifications(old: Version, new: Version) -> dict[NodeId, frozenset[Kind]]:
    """Each node and unit test that both versions have -> the ways in which it differs."""
    units = {id: frozenset[Kind](("body",) if body != old.units[id] else ()) for id, body in new.units.items() if id in old.units}
    is_same_target = not _is_of_another_target(old, new)
    return {id: _modifications(old, new, id, is_same_target=is_same_target) for id in new.nodes if id in old.nodes} | units


def _is_of_another_target(old: Version, new: Version) -> bool:
    """Whether all that is built is in other namespaces, each of which stands for one of the other version: mart and dev_ada_mart."""
    built = [id for id in new.nodes if id in old.nodes and id.startswith(("model.", "seed.")) and new.nodes[id].relation]
    places = {(_place(old.nodes[id]), _place(new.nodes[id])) for id in built}
    return len(built) > 1 and all(before != after for before, after in places) and len(places) == len({before for before, _ in places})


def _place(node: NodeVersion) -> str:
    return node.relation.rpartition(".")[0]


def _modifications(old: Version, new: Version, id_: NodeId, *, is_same_target: bool) -> frozenset[Kind]:
    """The ways in which a node that both versions have differs. A different text alone is not one."""
    before, after = old.nodes[id_], new.nodes[id_]
    found: set[Kind] = set()
    if not same_body(old, new, id_):
        found.add("body")
        if changed_macros(old, new, id_):
            found.add("macros")
    if before.settings != after.settings:
        found.add("configs")
    if before.relation != after.relation and (is_same_target or before.relation.rpartition(".")[2] != after.relation.rpartition(".")[2]):
        found.add("relation")
    if before.described != after.described:
        found.add("persisted_descriptions")
    if before.columns != after.columns and any("contract" in node.settings for node in (before, after)):
        found.add("contract")
    return frozenset(found)


def changed_macros(old: Version, new: Version, id_: NodeId) -> tuple[str, ...]:
    """The macros that a node calls, directly or indirectly, whose text differs between the versions."""
    called = {m for one in old.nodes[id_].macros for m in old.called.get(one, ())}
    called |= {m for one in new.nodes[id_].macros for m in new.called.get(one, ())}
    return tuple(sorted(m for m in called if old.macros.get(m) != new.macros.get(m)))


def same_body(old: Version, new: Version, id_: NodeId) -> bool:
    """Whether a node means the same, wherever the tables that it reads are in the catalog."""
    before, after = old.nodes[id_], new.nodes[id_]
    if before.body == after.body:
        return True
    if not before.sql or not after.sql or _names(old, before) == _names(new, after):
        return False
    # The same project for another target: what it reads has other names.
    return _with_ids(old, before) == _with_ids(new, after) or fingerprint(neutral_sql(old, id_)) == fingerprint(neutral_sql(new, id_))


def _names(version: Version, node: NodeVersion) -> Mapping[str, NodeId]:
    return version.relations(below(version, node.id))


def below(version: Version, id_: NodeId) -> Iterable[NodeId]:
    """What a node reads, directly or through ephemeral models."""
    seen: dict[NodeId, None] = {}
    waiting = list(version.nodes[id_].reads)
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen[one] = None
            node = version.nodes.get(one)
            waiting += node.reads if node and node.settings.get("materialized") == "ephemeral" else ()
    return seen


def _with_ids(version: Version, node: NodeVersion) -> str:
    """A quick comparison of text: if only names differ, nothing has to be parsed."""
    names = _names(version, node)
    if not names:
        return node.sql
    pattern = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return re.sub(rf"(?<![\w.`])(?:{pattern})(?![\w`])", lambda match: quote(names[match[0]]), node.sql)


def _renamed(sql: str, names: Mapping[str, str], *, keep_names: bool) -> str:
    """SQL with other names of tables. `names`: name -> the new one, both as SQL."""
    known = {name.lower(): new for name, new in names.items()}
    query = parse_text("definition", sql)

    def relation(name: str, read: Read) -> str | MappedText:
        written = query.sql.text[read.start : read.end]
        travel = f" {query.sql.text[read.travel.start : read.travel.end]}" if read.travel else ""
        return (name or written) + travel

    found = tuple(known.get(".".join(map(quote, read.parts)).lower(), "") for read in query.reads)
    return replace_reads(query, found, relation, keep_names=keep_names).text


def neutral_sql(version: Version, id_: NodeId) -> str:
    """The definition with ids in place of the tables that it reads, each under an alias."""
    node = version.nodes[id_]
    return _with_names(node, {name: quote(one) for name, one in _names(version, node).items()}, keep_names=False)


def sql_with_names(version: Version, id_: NodeId, names: Mapping[NodeId, str]) -> str:
    """The definition with other names for the tables that it reads. `names`: id -> name as SQL."""
    node = version.nodes[id_]
    new = {name: names.get(one, name) for name, one in _names(version, node).items()}
    # As they are, names need no parser.
    return node.sql if all(name == other for name, other in new.items()) else _with_names(node, new, keep_names=True)


def _with_names(node: NodeVersion, names: Mapping[str, str], *, keep_names: bool) -> str:
    try:
        return _renamed(node.sql, names, keep_names=keep_names)
    except ProjectError:
        return node.sql
