"""Rewrite + which reads pay -> the same rewrite, in which a table is read once for its rows with some keys, at both versions.

What a result was before is computed from the rows with the changed keys at the recorded snapshot, and what it is now from those at the
pinned one. The two differ only by the change: old = new + minus - plus, as bags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Join, Ref, Relation, Scan, SetOperation, Union, conjuncts, renamed, walk, with_children
from mvbuild.incremental.column_pruning import pruned
from mvbuild.incremental.delta import Cte
from mvbuild.incremental.emit import null_safe
from mvbuild.incremental.kinds import Types, is_exact
from mvbuild.incremental.rewrite import Rewrite, relations_of, with_more_statements

READ = "read_"
"""The prefix of the names of rows that are read once."""
_Place = tuple[int, str, tuple[tuple[str, str], ...], str]
"""Of equal reads: the table, the statement with the keys, (column of the table, column of the keys) of each key, and the version, if the
other version does not follow from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The tables with added rows and those with removed rows, and the types of their columns."""

    plus: frozenset[int]
    minus: frozenset[int]
    types: Types


def with_shared_reads(rewrite: Rewrite, changed: Changed, pays: Callable[[Join], bool]) -> Rewrite | None:
    """None if no table is read more than once for the same keys. `pays`: whether it pays to keep the rows of a
    table that have some keys, as this semijoin returns them.

    >>> from mvbuild.incremental.samples import case, formula
    >>> from mvbuild.incremental.strategies import bag
    >>> asked = case("SELECT customer_id, max(id) AS last FROM {orders} GROUP BY customer_id", removed=True)
    >>> changed = Changed(plus=asked.plus, minus=asked.minus, types=asked.shape.types)
    >>> found = with_shared_reads(bag.rewrite(asked), changed, lambda table: True)
    >>> formula(found.ctes[1].relation)
    'semi join[customer_id <=> keys_0_0k](orders, keys_0)'
    >>> formula(found.write.minus).count("orders.plus"), formula(found.write.minus).count("orders.old")
    (1, 0)
    """
    rewrite = with_more_statements(rewrite, pruned, [])
    sharing = _Sharing(changed, pays)
    for relation in relations_of(rewrite):
        sharing.count(relation)
    made = with_more_statements(rewrite, sharing.of, sharing.new)
    return made if sharing.made else None


@dataclass(frozen=True, slots=True)
class _Read:
    """The rows of a table with some keys. `names`: column of the table -> its name in them."""

    names: Mapping[str, str]
    versions: Mapping[str, Relation]

    def of(self, scan: Scan) -> Relation:
        return renamed(self.versions[scan.version], tuple((name, self.names[source]) for name, source in scan.sources))


@dataclass
class _Sharing:
    changed: Changed
    pays: Callable[[Join], bool]
    reads: dict[_Place, list[Scan]] = field(default_factory=dict)
    made: dict[_Place, _Read] = field(default_factory=dict)
    new: list[Cte] = field(default_factory=list)
    """The statements that the last relations read."""

    def count(self, relation: Relation) -> None:
        for node in walk(relation):
            place = self._place(node)
            if place is not None:
                self.reads.setdefault(place, []).append(node.left)  # type: ignore[union-attr, arg-type]

    def of(self, relation: Relation) -> Relation:
        place = self._place(relation)
        if place is None or len(self.reads[place]) < 2:
            return with_children(relation, tuple(map(self.of, relation.children)))
        assert isinstance(relation, Join)
        assert isinstance(relation.left, Scan)
        if place not in self.made:
            self.made[place] = self._read(place, relation.right)
        return self.made[place].of(relation.left)

    def _read(self, place: _Place, keys: Relation) -> _Read:
        """A statement with the rows of all these reads, and one with the earlier rows if they are computed and read more than once."""
        leaf, scans = place[0], self.reads[place]
        names = {source: name for one in reversed(scans) for name, source in one.sources}
        version = min(one.version for one in scans)  # "new" before "old"
        whole = Scan(leaf, tuple((name, source) for source, name in names.items()), version)
        semi = Join(whole, keys, "semi", null_safe([(names[source], key) for source, key in place[2]]))
        now = self._statement(f"{READ}{len(self.made)}", semi, at_once=True)
        before = self._before(now, semi)
        if leaf in self.changed.plus and len([one for one in scans if one.version != version]) > 1:
            before = self._statement(f"{READ}{len(self.made)}_before", before)
        return _Read(names, {version: now, "old": now if version == "old" else before})

    def _statement(self, name: str, relation: Relation, *, at_once: bool = False) -> Ref:
        self.new.append(Cte(name, relation, at_once=at_once))
        return self.new[-1].ref

    def _before(self, now: Relation, semi: Join) -> Relation:
        """The rows at the recorded snapshot, from those at the pinned one."""
        scan = semi.left
        assert isinstance(scan, Scan)
        plus, minus = (replace(semi, left=replace(scan, version=version)) for version in ("plus", "minus"))
        # First the removed rows: a change in steps may add a row and remove it again, so that it is not there at the end.
        if scan.leaf in self.changed.minus:
            now = Union((now, minus), scan.columns)
        return SetOperation(now, plus, "except", True, scan.columns) if scan.leaf in self.changed.plus else now

    def _place(self, relation: Relation) -> _Place | None:
        if not isinstance(relation, Join) or relation.kind != "semi":
            return None
        scan, keys = relation.left, relation.right
        if not isinstance(scan, Scan) or not isinstance(keys, Ref) or scan.version not in ("new", "old") or not self.pays(relation):
            return None
        pairs = list(_pairs(relation))
        if None in pairs:
            return None
        sources = dict(scan.sources)
        by = tuple(sorted((sources[own], key) for own, key in pairs))  # type: ignore[misc]
        is_old_known = scan.leaf not in self.changed.plus or all(is_exact(self.changed.types.get(name)) for name in scan.columns)
        return scan.leaf, keys.name, by, "" if is_old_known else scan.version


def _pairs(semi: Join) -> Iterator[tuple[str, str] | None]:
    """(column of the scan, column of the keys) of each part of the condition; None for one that compares something else."""
    assert isinstance(semi.left, Scan)
    for part in conjuncts(semi.on):
        sides = [side for side in (part.this, part.expression) if isinstance(side, exp.Column)]
        is_plain = isinstance(part, exp.NullSafeEQ) and len(sides) == 2 and sides[0].name in semi.left.columns
        yield (sides[0].name, sides[1].name) if is_plain else None
