"""TableChange + predicates -> whether one of its rows can satisfy them: by partition values, column bounds and null counts of its files.

Anything missing or unknown may match. Columns are matched by field id, so that current names find the columns of files from before a
rename.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from datetime import date
from struct import error as StructError  # noqa: N812
from typing import TYPE_CHECKING, Any

from mvbuild.adapters.iceberg.change_tables import group
from mvbuild.adapters.iceberg.private_pyiceberg import bounds_test
from mvbuild.dataclass import dataclass
from mvbuild.ports.changes import AnyOf, Comparison, FileGroup, Predicate, TableChange

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema

    from mvbuild.adapters.iceberg.manifests import FileEntry

_UNREADABLE = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, NotImplementedError, StructError)
_EPOCH = date(1970, 1, 2)
_LIMITS = {"int": 2**30, "long": 2**62}
"""Truncated values beyond this limit may have overflowed the type at its lower end: writers wrap around, PyIceberg does not."""
_CLASSES = {
    "=": "EqualTo",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
    "starts with": "StartsWith",
}
_EXACT_DIGITS = 28
"""PyIceberg rounds when it computes with decimals of more digits."""


def may_match(change: TableChange, conjunctions: Sequence[tuple[Predicate, ...]]) -> bool:
    files = [file for part in change.parts for file in (*part.files.added, *part.files.removed, *part.files.altered)]
    return any(_may_match(change, files, predicates) for predicates in conjunctions)


def has_replaced_text(change: TableChange) -> bool:
    return any(entry.has_replaced_text for part in change.parts for entry in part.files.added)


def matching(change: TableChange, predicates: Sequence[Predicate]) -> FileGroup:
    """The matching files among those that were added."""
    return group(matching_files(change, predicates))


def matching_files(change: TableChange, predicates: Sequence[Predicate]) -> list[FileEntry]:
    """The same, the files themselves."""
    files = [entry for part in change.parts for entry in part.files.added]
    try:
        test = _Test(_fields(change, predicates), predicates)
    except _UNREADABLE:
        return files
    return [entry for entry in files if test.may_match(entry)]


def _may_match(change: TableChange, files: Sequence[FileEntry], predicates: Sequence[Predicate]) -> bool:
    if not predicates or not files:
        return bool(files)
    try:
        test = _Test(_fields(change, predicates), predicates)
    except _UNREADABLE:
        return True
    return any(test.may_match(file) for file in files)


def _fields(change: TableChange, predicates: Sequence[Predicate]) -> dict[str, dict[str, Any]]:
    """Column -> its field, as optional even if the schema says otherwise: files may be older than that."""
    by_name = {f["name"]: f for f in change.table.schema["fields"]}
    return {name: {"id": by_name[name]["id"], "type": by_name[name]["type"]} for name in dict.fromkeys(_columns(predicates))}


def _columns(predicates: Sequence[Predicate]) -> Iterator[str]:
    for predicate in predicates:
        if isinstance(predicate, Comparison):
            yield predicate.column
        else:
            for branch in predicate.branches:
                yield from _columns(branch)


@dataclass
class _Test:
    """One conjunction, prepared once for all files."""

    fields: dict[str, dict[str, Any]]
    predicates: Sequence[Predicate]
    _schema: Schema = field(init=False)
    _by_bounds: Callable[[DataFile], bool] = field(init=False)
    _by_partition: dict[str, Callable[[DataFile], bool]] = field(init=False, default_factory=dict)
    """Spec of the manifest -> its test."""

    def __post_init__(self) -> None:
        from pyiceberg.schema import Schema

        # Internal names, because names of the table may contain dots.
        fields = [{**f, "name": f"c{f['id']}", "required": False} for f in self.fields.values()]
        self._schema = Schema.model_validate({"type": "struct", "schema-id": 0, "fields": fields})
        self._by_bounds = bounds_test(self._schema, self._expression(self.predicates))

    def may_match(self, entry: FileEntry) -> bool:
        return _passes_or_unreadable(self._by_bounds, entry.file) and _passes_or_unreadable(self._partition_test(entry), entry.file)

    def _partition_test(self, entry: FileEntry) -> Callable[[DataFile], bool]:
        spec = entry.header.meta.get("partition-spec") or "[]"
        if spec not in self._by_partition:
            try:
                self._by_partition[spec] = self._made(json.loads(spec))
            except _UNREADABLE:
                self._by_partition[spec] = _always
        return self._by_partition[spec]

    def _made(self, spec: list[dict[str, Any]]) -> Callable[[DataFile], bool]:
        """The fields of a spec that use our columns, as a spec."""
        from pyiceberg.expressions.visitors import expression_evaluator, inclusive_projection
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.transforms import parse_transform
        from pyiceberg.typedef import Record

        own = {f["id"] for f in self.fields.values()}
        places = [at for at, f in enumerate(spec) if f.get("source-id") in own]
        predicates = [p for p in self.predicates if self._is_projected(p)]
        if not places or not predicates:
            return _always
        parts = [PartitionField(spec[at]["source-id"], 1000 + at, parse_transform(spec[at]["transform"]), f"p{at}") for at in places]
        small = PartitionSpec(*parts)
        projected = inclusive_projection(self._schema, small)(self._expression(predicates))
        evaluate = expression_evaluator(Schema(*small.partition_type(self._schema).fields), projected, case_sensitive=True)
        types = {f["id"]: f["type"] for f in self.fields.values()}
        limits = {at: _LIMITS.get(types[spec[at]["source-id"]]) for at in places if spec[at]["transform"].startswith("truncate")}

        def test(file: DataFile) -> bool:
            if len(file.partition) != len(spec):
                return True
            if any(limit and abs(file.partition[at] or 0) >= limit for at, limit in limits.items()):
                return True
            return evaluate(Record(*(file.partition[at] for at in places)))

        return test

    def _is_projected(self, predicate: Predicate) -> bool:
        """Partition values that old releases of Iceberg computed for times before 1970 are too high by one."""
        if isinstance(predicate, AnyOf):
            return all(self._is_projected(one) for branch in predicate.branches for one in branch)
        values = predicate.value if isinstance(predicate.value, tuple) else (predicate.value,)
        type_ = str(self.fields[predicate.column]["type"])
        if type_.startswith("decimal") and int(type_.partition("(")[2].partition(",")[0]) > _EXACT_DIGITS:
            return False
        return not any(_is_early(value) for value in values)

    def _expression(self, predicates: Sequence[Predicate]) -> BooleanExpression:
        from pyiceberg.expressions import AlwaysTrue, And

        found: BooleanExpression = AlwaysTrue()
        for predicate in predicates:
            found = And(found, self._one(predicate))
        return found

    def _one(self, predicate: Predicate) -> BooleanExpression:
        import pyiceberg.expressions

        # Its classes accept names and values, but their type annotations do not say so.
        to: Any = pyiceberg.expressions
        found: BooleanExpression
        if isinstance(predicate, AnyOf):
            found = to.AlwaysFalse()
            for branch in predicate.branches:
                found = to.Or(found, self._expression(branch))
            return found
        name, value = f"c{self.fields[predicate.column]['id']}", predicate.value
        if predicate.operator in ("is null", "is not null"):
            found = (to.IsNull if predicate.operator == "is null" else to.NotNull)(name)
        elif predicate.operator == "in":
            found = to.In(name, set(value))
        else:
            found = getattr(to, _CLASSES[predicate.operator])(name, value)
        return found


def _passes_or_unreadable(test: Callable[[DataFile], bool], file: DataFile) -> bool:
    try:
        return test(file)
    except _UNREADABLE:
        return True


def _always(file: DataFile) -> bool:  # noqa: ARG001
    return True


def _is_early(value: object) -> bool:
    return isinstance(value, date) and (value.year, value.month, value.day) < (_EPOCH.year, _EPOCH.month, _EPOCH.day)
