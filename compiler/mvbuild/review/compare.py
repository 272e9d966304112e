"""two Versions -> NodeChanges: what was added, removed, renamed and changed, and the class of each change. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from mvbuild.dataclass import dataclass
from mvbuild.equivalence.edit import Finding
from mvbuild.equivalence.ladder import compare
from mvbuild.equivalence.resolve import Schema
from mvbuild.graph.model import NodeId
from mvbuild.review.model import ORDER, NodeChange, SettingChange
from mvbuild.versions.model import NodeVersion, Version
from mvbuild.versions.other import changed_macros, same_body, sql_with_names

_TESTS = "test"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Both versions. `columns` has those of nodes that are the same in both, as far as they are known."""

    old: Version
    new: Version
    columns: Mapping[NodeId, Schema]

    @cached_property
    def relations(self) -> Mapping[NodeId, str]:
        """Id -> the name by which both versions read a node, as SQL: the current one in the catalog, if there is one."""
        former = {id: self.new.nodes.get(self.renamed.get(id, id), node) for id, node in self.old.nodes.items()}
        return {id: node.relation for id, node in {**former, **self.new.nodes}.items() if node.relation}

    @cached_property
    def schemas(self) -> Mapping[str, Schema]:
        """Name in the catalog -> columns."""
        return {self.relations[id].replace("`", "").lower(): columns for id, columns in self.columns.items() if id in self.relations}

    @cached_property
    def renamed(self) -> Mapping[NodeId, NodeId]:
        """Old id -> new id of what got another name."""
        gone = [n for id, n in self.old.nodes.items() if id not in self.new.nodes and n.kind in ("model", "seed")]
        come = [n for id, n in self.new.nodes.items() if id not in self.old.nodes and n.kind in ("model", "seed")]
        found: dict[NodeId, NodeId] = {}
        for node in come:
            renamed = [g for g in gone if node.former and node.former.rpartition(".")[2].lower() in _names(g)]
            alike = renamed or [g for g in gone if g.kind == node.kind and g.body == node.body and g.body]
            others = [c for c in come if not renamed and c.body == node.body]
            if len(alike) == 1 and alike[0].id not in found and len(others) < 2:
                found[alike[0].id] = node.id
        return found

    @cached_property
    def changed_vars(self) -> tuple[str, ...]:
        both = {*self.old.vars, *self.new.vars}
        return tuple(sorted(name for name in both if self.old.vars.get(name) != self.new.vars.get(name)))

    @cached_property
    def changed_macros(self) -> tuple[str, ...]:
        both = {*self.old.macros, *self.new.macros}
        return tuple(sorted(id for id in both if self.old.macros.get(id) != self.new.macros.get(id)))

    @cached_property
    def is_other_place(self) -> bool:
        """Whether the versions were compiled for different targets, so that all names in the catalog differ."""
        pairs = [(self.old.nodes[id], n) for id, n in self.new.nodes.items() if id in self.old.nodes and n.kind in ("model", "seed")]
        return len(pairs) > 1 and all(old.relation != new.relation for old, new in pairs)


def _names(node: NodeVersion) -> set[str]:
    return {node.name.lower(), node.relation.rpartition(".")[2].strip("`").lower()}


def changes(pair: Pair, *, downstream: Mapping[NodeId, tuple[NodeId, ...]], texts: Mapping[NodeId, str]) -> tuple[NodeChange, ...]:
    """The most important first. `texts`: the current template of each model."""
    back = {new: old for old, new in pair.renamed.items()}
    found: list[NodeChange] = []
    for id_, node in pair.new.nodes.items():
        former = back.get(id_, id_)
        if former in pair.old.nodes:
            change = _changed(pair, pair.old.nodes[former], node, downstream.get(id_, ()), texts.get(id_, ""))
            found += [change] if change else []
        else:
            found.append(NodeChange(id=id_, name=node.name, path=node.path, what="added", downstream=downstream.get(id_, ())))
    for id_, node in pair.old.nodes.items():
        if id_ not in pair.new.nodes and id_ not in pair.renamed:
            found.append(NodeChange(id=id_, name=node.name, path=node.path, what="removed"))
    return tuple(sorted(found, key=lambda c: (-ORDER.index(c.kind), c.resource_type == _TESTS, c.name)))


def _changed(pair: Pair, old: NodeVersion, new: NodeVersion, downstream: tuple[NodeId, ...], text: str) -> NodeChange | None:
    is_renamed = old.id != new.id
    settings = tuple(_settings(old, new))
    findings = [*_findings(pair, old, new), *_of_place(pair, old, new, settings)]
    documented = old.described != new.described
    if not (is_renamed or settings or findings or documented):
        return None
    matters = any(f.kind != "formatting" for f in findings)
    return NodeChange(
        id=new.id,
        name=new.name,
        path=new.path,
        what="renamed" if is_renamed else "changed",
        # A change of config() in the file is reported as configuration.
        findings=tuple(f for f in findings if f.kind != "formatting" or not (settings or matters or is_renamed)),
        settings=settings,
        documented=documented,
        former=old.name if is_renamed else "",
        because=tuple(_causes(pair, old, new, text)) if matters else (),
        downstream=downstream,
    )


def _findings(pair: Pair, old: NodeVersion, new: NodeVersion) -> list[Finding]:
    if new.kind == "model":
        if not _same(pair, old, new):
            before, now = sql_with_names(pair.old, old.id, pair.relations), sql_with_names(pair.new, new.id, pair.relations)
            edit = compare(before, now, pair.schemas)
            # The definition differs, but with the same names for the same tables it does not.
            is_same = edit.rung == "tokens"
            return [Finding(kind="equal", message="what it reads was renamed")] if is_same else list(edit.findings)
        return [] if old.text == new.text else [Finding(kind="formatting", message="only formatting and comments")]
    if old.body == new.body:
        return []
    message = "its rule was changed" if new.kind == _TESTS else "its rows or declared types were changed"
    return [Finding(kind="rows", message=message)]


def _same(pair: Pair, old: NodeVersion, new: NodeVersion) -> bool:
    if old.id == new.id:
        return same_body(pair.old, pair.new, old.id)
    return old.body == new.body


def _of_place(pair: Pair, old: NodeVersion, new: NodeVersion, settings: Iterable[SettingChange]) -> Iterator[Finding]:
    """What readers outside the project would notice: its name in the catalog."""
    turned = next((s for s in settings if s.name == "materialized"), None)
    if turned and turned.new == "ephemeral":
        yield Finding(kind="breaking", message="it is now ephemeral: readers of the catalog no longer find it")
    elif (turned and turned.old == "ephemeral") or pair.is_other_place or not old.relation or old.relation == new.relation:
        return
    elif old.settings.get("materialized") != "ephemeral" and new.settings.get("materialized") != "ephemeral":
        yield Finding(kind="breaking", message=f"its name in the catalog is now {new.relation}, and was {old.relation}")


def _settings(old: NodeVersion, new: NodeVersion) -> Iterator[SettingChange]:
    for name in sorted({*old.settings, *new.settings}):
        before, after = old.settings.get(name), new.settings.get(name)
        if before != after:
            yield SettingChange(name=name, old=before, new=after)


def _causes(pair: Pair, old: NodeVersion, new: NodeVersion, text: str) -> Iterator[str]:
    if old.id == new.id:
        for macro in changed_macros(pair.old, pair.new, new.id):
            yield f"the macro '{macro.rpartition('.')[2]}' was changed"
    bodies = [text, *(pair.new.macros.get(m, "") for own in new.macros for m in pair.new.called.get(own, ()))]
    for name in pair.changed_vars:
        if any(re.search(rf"\bvar\(\s*['\"]{re.escape(name)}['\"]", body) for body in bodies):
            yield f"the variable '{name}' was changed"
    for read in new.reads:
        parent, before = pair.new.nodes.get(read), pair.old.nodes.get(read)
        if parent and before and parent.settings.get("materialized") == "ephemeral" and parent.body != before.body:
            yield f"the ephemeral model '{parent.name}' was changed"
