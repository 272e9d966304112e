"""Rewrite + sizes of files -> Work: the bytes and rows that it reads and writes, told from metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mvbuild.incremental.algebra import Join, Ref, Relation, Scan, walk
from mvbuild.incremental.inputs import Input
from mvbuild.incremental.statements import STORAGE, Difference
from mvbuild.ports.catalog import TableChange

CHEAPER = 0.8
"""What an incremental refresh must cost at most of a full one to be chosen: sizes of files are an estimate."""
FOR_CHILDREN = 1.5
"""What it may cost, of a full refresh, to write only the rows that differ: MVs that read this one then have little to do."""
NARROWED = 0.3
"""Of a table that is joined with a small change, or read for some keys: its rows are scanned, but hardly any goes further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a refresh reads and writes."""

    bytes: int
    rows: int

    def __add__(self, other: Work) -> Work:
        return Work(bytes=self.bytes + other.bytes, rows=self.rows + other.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Of every table at both versions, of what changed, and of the storage."""

    inputs: Sequence[Input]
    changes: Mapping[int, TableChange]
    storage: Work
    rewrites_files: bool = False
    """Whether a row that goes has the rest of its file written again (copy-on-write)."""

    def of(self, scan: Scan) -> Work:
        if scan.leaf == STORAGE:
            return self.storage
        change = self.changes.get(scan.leaf)
        if change is not None and scan.version == "plus":
            # Files whose deletes differ are read for rows that were hidden.
            return Work(bytes=change.added.bytes, rows=change.added.rows)
        if change is not None and scan.version == "minus":
            gone = change.rows - change.added.rows
            return Work(bytes=change.removed.bytes + change.altered.bytes, rows=gone)
        one = self.inputs[scan.leaf]
        return Work(bytes=one.bytes, rows=one.rows)


def full_work(scans: Sequence[Scan], sizes: Sizes) -> Work:
    """All tables once for each time that the query reads them, and the storage written again."""
    return sum((sizes.of(scan) for scan in scans), Work(bytes=0, rows=0)) + sizes.storage


def work_of(difference: Difference, sizes: Sizes) -> Work:
    """Every statement once: each table that it reads, less where keys narrow it down."""
    relations = [*(let.relation for let in difference.lets), *(r for r in (difference.gone, difference.came) if r is not None)]
    total = Work(bytes=0, rows=0)
    for relation in relations:
        total += _work(relation, sizes, narrowed=False)
    if difference.partitions is not None or (difference.gone is not None and sizes.rewrites_files):
        total += Work(bytes=int(sizes.storage.bytes * NARROWED), rows=int(sizes.storage.rows * NARROWED))
    return total


def _work(relation: Relation, sizes: Sizes, *, narrowed: bool) -> Work:
    if isinstance(relation, Scan):
        found = sizes.of(relation)
        whole = relation.version in ("plus", "minus") or not narrowed
        return found if whole else Work(bytes=int(found.bytes * NARROWED), rows=int(found.rows * NARROWED))
    if isinstance(relation, Join):
        small = [_is_small(side) for side in (relation.left, relation.right)]
        left = _work(relation.left, sizes, narrowed=narrowed or small[1])
        return left + _work(relation.right, sizes, narrowed=narrowed or small[0])
    return sum((_work(child, sizes, narrowed=narrowed) for child in relation.children), Work(bytes=0, rows=0))


def _is_small(relation: Relation) -> bool:
    """Whether it has only rows of a change, or rows that were computed before: what is joined with it is narrowed down."""
    scans = [n for n in walk(relation) if isinstance(n, Scan | Ref)]
    return any(isinstance(n, Ref) or n.version in ("plus", "minus") for n in scans)
