"""`partition_by` and `sort_by` of an MV + its columns -> a diagnostic for each column whose type Iceberg cannot partition or sort by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.graph.model import ModelNode
from mvbuild.lineage.model import Column
from mvbuild.project.settings import PartitionField

_DATES = ("date", "timestamp", "timestamp_ntz")
_TEXTS = ("string", "binary")
_EXACT = ("int", "bigint", "decimal")
_SOURCES = {
    "year": _DATES,
    "month": _DATES,
    "day": _DATES,
    "hour": _DATES[1:],
    "truncate": (*_EXACT, *_TEXTS),
    "bucket": (*_EXACT, *_TEXTS, *_DATES),
}
"""Transform -> the types that it accepts, of those that a table can have. `identity` accepts every type without parts."""
_NEEDS = {
    "year": "a date or a timestamp",
    "month": "a date or a timestamp",
    "day": "a date or a timestamp",
    "hour": "a timestamp",
    "truncate": "an integer, a decimal, a string or a binary",
    "bucket": "an integer, a decimal, a string, a binary, a date or a timestamp",
}
_SIMPLE = frozenset((*_DATES, *_TEXTS, *_EXACT, "boolean", "float", "double"))
"""Other types are not checked."""
_WITH_PARTS = ("array", "map", "struct")


def mistyped_in_layout(node: ModelNode, columns: Iterable[Column]) -> Iterator[Diagnostic]:
    """Columns of unknown types and names that are not columns are ignored."""
    config, types = node.model.config, {column.key: column.type for column in columns if column.type is not None}
    for field in config.partition_by:
        type_ = types.get(field.column.lower())
        needed = _needed(field.transform, type_) if type_ is not None else ""
        if needed:
            what = (
                f"partition_by of '{node.model.name}' has {_written(field)}, which needs {needed}, but column '{field.column}' is {type_}"
            )
            help = f"Change the type of '{field.column}' with CAST, or partition by something else."
            yield error("bad-config", what, config.spans.get("partition_by"), help=help)
    for sort in config.sort_by:
        type_ = types.get(sort.column.lower())
        if type_ is not None and _kind(type_) in _WITH_PARTS:
            what = f"sort_by of '{node.model.name}' names column '{sort.column}', which is {type_}"
            yield error("bad-config", what, config.spans.get("sort_by"), help="Sort by columns without parts.")


def _needed(transform: str, type_: str) -> str:
    """What the transform needs instead of the type; empty if it accepts the type."""
    kind = _kind(type_)
    if transform == "identity":
        return "a type without parts" if kind in _WITH_PARTS else ""
    known = kind in _SIMPLE or kind in _WITH_PARTS
    return _NEEDS[transform] if known and kind not in _SOURCES[transform] else ""


def _kind(type_: str) -> str:
    """A type without its parameters."""
    return type_.split("<")[0].split("(")[0]


def _written(field: PartitionField) -> str:
    inner = field.column if field.width is None else f"{field.width}, {field.column}"
    return f"'{inner}'" if field.transform == "identity" else f"'{field.transform}({inner})'"
