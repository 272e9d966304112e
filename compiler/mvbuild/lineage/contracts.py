"""a model with `contract: enforced` + its columns -> every difference from the columns that its YAML declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mvbuild.diagnostics import Diagnostic, did_you_mean, error, warning
from mvbuild.graph.model import ModelNode
from mvbuild.lineage.model import Bound, Column
from mvbuild.lineage.types import parsed, stored, text
from mvbuild.project.loaded import Column as Declared
from mvbuild.source import Span


def contract_problems(node: ModelNode, bound: Bound) -> Iterator[Diagnostic]:
    """The problems of one contract; none for a model without an enforced contract. A type that only Spark can determine is a warning."""
    if not node.model.config.contract:
        return
    declared = node.model.properties.columns
    place = node.model.config.spans.get("contract") or node.model.file.line_span(1)
    if not declared:
        message = f"The contract of '{node.model.name}' declares no columns"
        yield error("broken-contract", message, place, help="List the columns under `columns:`, each with its `data_type`.")
        return
    given = bound.columns.get(node.id)
    if given is None:
        message = f"The columns of '{node.model.name}' are unknown, so they cannot be compared with its contract"
        yield warning("unchecked-contract", message, place)
        return
    yield from _names(node, declared, given, place)
    known = {c.key: c for c in given}
    for column in declared:
        if column.name.lower() in known:
            yield from _types(node, column, known[column.name.lower()])


def _names(node: ModelNode, declared: Sequence[Declared], given: Sequence[Column], place: Span) -> Iterator[Diagnostic]:
    wanted, found = [c.name.lower() for c in declared], [c.key for c in given]
    for column in declared:
        if column.name.lower() not in found:
            help = did_you_mean(column.name, [c.name for c in given])
            yield error("broken-contract", f"'{node.model.name}' has no column '{column.name}'", column.span, help=help)
    for item in given:
        if item.key not in wanted:
            help = "Declare it under `columns:`, or remove it from the query."
            yield error("broken-contract", f"The contract does not declare the column '{item.name}'", item.span or place, help=help)
    if sorted(wanted) == sorted(found) and wanted != found:
        at = next(i for i, (one, two) in enumerate(zip(wanted, found, strict=True)) if one != two)
        message = f"Column {at + 1} of '{node.model.name}' is '{given[at].name}', and the contract has '{declared[at].name}' there"
        yield error("broken-contract", message, given[at].span or place, help="Put the columns in the order of the contract.")


def _types(node: ModelNode, declared: Declared, given: Column) -> Iterator[Diagnostic]:
    if declared.data_type is None:
        message = f"The contract declares no type for column '{declared.name}'"
        yield error("broken-contract", message, declared.span, help=f"Add `data_type: {given.type}`." if given.type else "Add `data_type`.")
        return
    type_ = parsed(declared.data_type)
    if type_ is None:
        message = f"Unknown type '{declared.data_type}'"
        yield error("broken-contract", message, declared.span, help="Use a type of Spark SQL, like `bigint` or `decimal(12,2)`.")
        return
    wanted = text(stored(type_)) if node.storage is not None else text(type_)
    if given.type is None:
        message = f"The type of column '{given.name}' is unknown, so it cannot be compared with the contract"
        help = f"CAST({given.name} AS {declared.data_type}) makes it certain."
        yield warning("unchecked-contract", message, given.span or declared.span, help=help)
    elif _shape(given.type) != _shape(wanted):
        message = f"Column '{given.name}' has type {given.type}, and the contract has {declared.data_type}"
        yield error(
            "broken-contract", message, given.span or declared.span, help=f"CAST it to {declared.data_type}, or change the contract."
        )


def _shape(type_: str | None) -> str | None:
    """A type without the case of its field names."""
    return type_.lower() if type_ else None
