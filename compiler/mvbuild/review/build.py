"""two Versions and their bound columns -> Review without its refreshes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mvbuild.equivalence.resolve import Schema
from mvbuild.graph.model import Graph, ModelNode, NodeId
from mvbuild.lineage.model import Bound
from mvbuild.review.compare import Pair, changes
from mvbuild.review.impact import Impact
from mvbuild.review.model import NodeChange, Review
from mvbuild.versions.model import Version


def build_review(
    graph: Graph, old: Version, new: Version, before: Bound | None, now: Bound, *, selected: frozenset[NodeId] | None = None
) -> Review:
    """`selected`: only these nodes and tests, and what was removed."""
    pair = Pair(old=old, new=new, columns=_schemas(old, new, before, now))
    downstream = {id: tuple(sorted(d for d in graph.descendants([id]) if isinstance(graph.nodes[d], ModelNode))) for id in _differing(pair)}
    texts = {node.id: node.model.file.text for node in graph.models}
    found = changes(pair, downstream=downstream, texts=texts)
    if selected is not None:
        found = tuple(c for c in found if c.id in selected or c.what == "removed")
    changed = frozenset(c.id for c in found if any(f.kind not in ("formatting", "equal") for f in c.findings))
    impact = Impact(graph=graph, before=before, now=now, changed=changed, renamed=pair.renamed)
    ordered = sorted(map(impact.of, found), key=lambda c: c.kind != "breaking")
    return Review(
        against=old.name,
        changes=tuple(ordered),
        macros=tuple(m.rpartition(".")[2] for m in pair.changed_macros),
        vars=pair.changed_vars,
        names=_names(graph, ordered),
    )


def _differing(pair: Pair) -> Iterable[NodeId]:
    """The changes whose readers are worth finding."""
    for id_, node in pair.new.nodes.items():
        former = pair.old.nodes.get(id_)
        if node.kind != "test" and (former is None or former.body != node.body or former.settings != node.settings):
            yield id_


def _schemas(old: Version, new: Version, before: Bound | None, now: Bound) -> Mapping[NodeId, Schema]:
    """Columns that are the same in both versions."""
    found: dict[NodeId, Schema] = {}
    for id_, columns in now.columns.items():
        names = [c.name for c in columns]
        if before is not None:
            former = before.columns.get(id_)
            is_same = former is not None and [c.name for c in former] == names
        else:
            one, other = old.nodes.get(id_), new.nodes.get(id_)
            is_same = id_.startswith("table.") or (one is not None and other is not None and one.body == other.body and not one.reads)
        if is_same:
            found[id_] = names
    return found


def _names(graph: Graph, found: Iterable[NodeChange]) -> dict[NodeId, str]:
    ids = {id for c in found for id in (c.id, *c.downstream, *(b.consumer for b in c.breaks))}
    names = {n.id: n.model.name for n in graph.models if n.id in ids}
    return {c.id: c.name for c in found} | names | {b.consumer: b.name for c in found for b in c.breaks}
