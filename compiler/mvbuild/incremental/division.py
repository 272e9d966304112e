"""A query divided into auxiliary views: Division -> the query with their queries put back, which Spark compares with the user's text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Relation, Scan, leaves, map_scans, renamed
from mvbuild.incremental.shape import Shape


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cut:
    """One auxiliary view. `leaf`: its number among the tables of the query; `shape`: its own query, over tables and earlier cuts."""

    leaf: int
    shape: Shape
    written: Relation | None = None
    """The tree as the user wrote it, if the view is computed from fewer rows."""
    keys: int | None = None
    """The number of the view that has the keys to which its groups are restricted."""

    @property
    def reads(self) -> frozenset[int]:
        return leaves(self.shape.root)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Division:
    """The auxiliary views, each after those that it reads; and the query over base tables and auxiliary views."""

    cuts: tuple[Cut, ...]
    shape: Shape
    proof: Shape | None = None
    """The query over the auxiliary views as the user wrote it, if `shape` computes an aggregate in another way."""

    @property
    def whole(self) -> Shape:
        """The query with the auxiliary views put back: what Spark compares with the user's text."""
        shown = self.proof or self.shape
        written = [cut.written or cut.shape.root for cut in self.cuts]
        return replace(shown, root=self._put_back(shown.root, written))

    def over_tables(self, relation: Relation) -> Relation:
        """A part of the query or of a view, with the auxiliary views put back as they are computed."""
        return self._put_back(relation, [cut.shape.root for cut in self.cuts])

    def _put_back(self, relation: Relation, trees: Sequence[Relation]) -> Relation:
        roots: dict[int, Relation] = {}

        def put_back(scan: Scan) -> Relation:
            return renamed(roots[scan.leaf], scan.sources) if scan.leaf in roots else scan

        for cut, tree in zip(self.cuts, trees, strict=True):
            roots[cut.leaf] = map_scans(tree, put_back)
        return map_scans(relation, put_back)
