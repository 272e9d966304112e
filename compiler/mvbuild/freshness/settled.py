"""Graph + lookup + what an earlier command found -> the MVs that are as they were then: fresh, with nothing to do.

What is judged of an MV, and what a run does with it, depends on nothing but the graph, the session, and the metadata files of the MV and of
its ancestors. Metadata files never change. So if all of these are the same, the result is the same, and no file has to be read.

A signature of a node says which metadata files its names lead to. It is empty for a base table outside the catalog, whose state has no
file that could be compared: MVs that read one are always judged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b

from mvbuild.cache.keys import digest
from mvbuild.dataclass import dataclass
from mvbuild.graph.model import Graph, ModelNode, Node, NodeId, TableNode
from mvbuild.names import TableIdentifier
from mvbuild.ports.session import Session

Stamps = Mapping[TableIdentifier, "str | None"]
_ABSENT = "no"
"""In place of the stamp of a name that does not exist."""
_NONE = ""
"""The signature of a node that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What a command found out."""

    settled: frozenset[NodeId]
    """MVs that were fresh without any reason to mention, and for which a run had nothing to do."""
    signatures: Mapping[NodeId, str]
    """Of these MVs and their ancestors."""
    files: Mapping[NodeId, str]
    """MV in the metadata-file format -> its metadata file, to which its view leads."""
    refreshed: Mapping[NodeId, int | None]
    """MV -> when its last refresh began, as its record says."""
    tags: Mapping[str, str]
    """See `Lookup`."""
    whole: str
    """The signature of all nodes together."""


NOTHING = Earlier(settled=frozenset(), signatures={}, files={}, refreshed={}, tags={}, whole="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What a command sees of the names of a graph before it reads any metadata."""

    key: str
    """Of the graph and the session, for the cache."""
    stamps: Stamps
    tags: Mapping[str, str]
    stamp: Callable[[str], str | None]
    """See `Lookup`."""
    signatures: Mapping[NodeId, str]
    """Of all nodes, unless all of them are as they were."""
    whole: str
    """As in `Earlier`."""
    earlier: Earlier
    settled: frozenset[NodeId]


def key_of(graph: Graph, session: Session, *, has_views: bool) -> str | None:
    """The key of what is known about a graph; None for a graph that has none: it has diagnostics, or is that of a branch."""
    if graph.outlined is None or graph.project.branch is not None:
        return None
    return digest("settled", graph.outlined.key, sorted(session.settings.items()), session.is_whole, has_views)


def sighting(
    key: str, graph: Graph, earlier: Earlier, stamps: Stamps, tags: Mapping[str, str], stamp: Callable[[str], str | None]
) -> Sighting:
    """`graph` has its views of the catalog expanded."""
    changed = graph.outlined.changed if graph.outlined else frozenset()
    whole = _whole(graph, changed, stamps, stamp, earlier.files)
    signatures: dict[NodeId, str] = {}
    settled = earlier.settled
    if whole == _NONE or whole != earlier.whole:
        signatures = {id: _signature(node, changed, stamps, stamp, earlier.files.get(id)) for id, node in graph.nodes.items()}
        moved = [id for id, found in signatures.items() if not found or found != earlier.signatures.get(id)]
        left = earlier.settled.difference(moved) & graph.nodes.keys()
        settled = left - graph.descendants(moved) if moved and left else left
    return Sighting(key=key, stamps=stamps, tags=tags, stamp=stamp, signatures=signatures, whole=whole, earlier=earlier, settled=settled)


def remember(
    seen: Sighting, graph: Graph, settled: Collection[NodeId], files: Mapping[NodeId, str], refreshed: Mapping[NodeId, int | None]
) -> None:
    """Keep in the cache that these MVs are settled. `files` and `refreshed`: of those that were not settled before, see `Earlier`."""
    found = frozenset(settled)
    if found == seen.settled == seen.earlier.settled and (seen.tags, seen.whole) == (seen.earlier.tags, seen.earlier.whole):
        return
    changed = graph.outlined.changed if graph.outlined else frozenset()
    kept = {id: place for id, place in {**seen.earlier.files, **files}.items() if id in found}

    def signed(id: NodeId) -> str:
        known = seen.signatures.get(id) if id not in kept else None
        return known if known is not None else _signature(graph.nodes[id], changed, seen.stamps, seen.stamp, kept.get(id))

    signatures = {id: signed(id) for id in (*found, *sorted(graph.ancestors(found) - found))}
    content = {
        "settled": sorted(id for id in found if signatures[id] != _NONE),
        "signatures": signatures,
        "files": kept,
        "tags": seen.tags,
        "refreshed": {id: at for id, at in {**seen.earlier.refreshed, **refreshed}.items() if id in found},
        "whole": _whole(graph, changed, seen.stamps, seen.stamp, kept),
    }
    graph.project.cache.settled.put(seen.key, json.dumps(content, separators=(",", ":")))
    graph.project.cache.save(graph.project.cache.settled)


def recalled(key: str | None, graph: Graph) -> Earlier:
    """What the last command that looked at the graph remembered."""
    text = graph.project.cache.settled.get(key) if key is not None else None
    try:
        found = json.loads(text) if text is not None else None
    except ValueError:
        found = None
    if found is None:
        return NOTHING
    return Earlier(**{**found, "settled": frozenset(found["settled"])})


def _signature(node: Node, changed: Collection[NodeId], stamps: Stamps, stamp: Callable[[str], str | None], file: str | None) -> str:
    return _hash(_parts(node, changed, stamps, stamp, file))


def _whole(
    graph: Graph, changed: Collection[NodeId], stamps: Stamps, stamp: Callable[[str], str | None], files: Mapping[NodeId, str]
) -> str:
    """The signature of all nodes, none of which may be without one. It is compared first, because usually nothing has moved."""
    found = [_parts(node, changed, stamps, stamp, files.get(id)) for id, node in graph.nodes.items()]
    return _hash([part for parts in found for part in parts]) if all(found) else _NONE


def _hash(parts: Sequence[str]) -> str:
    return blake2b("\n".join(parts).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest() if parts else _NONE


def _parts(node: Node, changed: Collection[NodeId], stamps: Stamps, stamp: Callable[[str], str | None], file: str | None) -> list[str]:
    """What a signature is made of; nothing for a node that has none."""
    name = node.identifier
    own = stamps.get(name, _ABSENT)
    if own is None or (isinstance(node, TableNode) and node.outside is not None):
        return []
    parts = [node.id, name.catalog, *name.namespace, name.name, own]
    if isinstance(node, ModelNode) and node.storage is not None:
        of_storage = stamps.get(node.storage, _ABSENT)
        of_file = stamp(file) if file is not None else _ABSENT
        if of_storage is None or of_file is None:
            return []
        parts += node.storage.catalog, *node.storage.namespace, node.storage.name, of_storage, of_file
    if node.id in changed and isinstance(node, ModelNode):
        # The key covers all other files of the project.
        parts.append(node.model.file.text)
    return parts
