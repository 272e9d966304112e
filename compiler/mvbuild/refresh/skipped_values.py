"""Rows that are read without Iceberg's conditions -> whether one has a value for which Iceberg skips files, and Spark compares differently.

For Spark NaN is larger than any number, and -0.0 equals 0.0. The bounds of a file have no NaN, and -0.0 is less than 0.0 there. So whether
a query with `x > 0.1` returns a row of NaN depends on the other rows of its file, and a change that is computed from its rows alone could
remove what the result never had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import copysign, isnan
from typing import TYPE_CHECKING, Any

from mvbuild.incremental.compared_columns import compared_columns
from mvbuild.incremental.inputs import Input
from mvbuild.incremental.rewrite import Exchange, OverwritePartitions
from mvbuild.incremental.shape import Shape
from mvbuild.incremental.zeros import has_zeros
from mvbuild.names import quote
from mvbuild.refresh.write_outcome import NotIncremental

if TYPE_CHECKING:
    from mvbuild.refresh.inputs import RefreshInputs


def compared_floats(shape: Shape, inputs: Sequence[Input]) -> dict[int, Mapping[str, Any]]:
    """Leaf -> the columns with floats that the query compares, and their Iceberg types. None of auxiliary views, whose conditions Iceberg
    never sees."""
    found: dict[int, Mapping[str, Any]] = {}
    for leaf, names in compared_columns(shape.root).items():
        types = {field["name"]: field["type"] for field in inputs[leaf].schema["fields"]} if leaf < len(inputs) else {}
        floats = {name: types[name] for name in sorted(names) if has_zeros(types.get(name))}
        if floats and not inputs[leaf].is_auxiliary_view:
            found[leaf] = floats
    return found


def has_skipped_value(rows: Any, names: Mapping[str, Any]) -> bool:
    """`rows`: an Arrow table."""
    columns = (rows.column(name).to_pylist() for name in names if name in rows.column_names)
    return any(map(_is_skipped, (value for column in columns for value in column)))


def _is_skipped(value: Any) -> bool:
    """A map of Arrow is a list of pairs."""
    if isinstance(value, float):
        return isnan(value) or (value == 0 and copysign(1, value) < 0)
    if isinstance(value, dict):
        return any(map(_is_skipped, value.values()))
    return isinstance(value, list | tuple) and any(map(_is_skipped, value))


def require_no_skipped_values(inputs: RefreshInputs) -> None:
    """Check the changes. An `Exchange` computes what it writes from the tables, as a full refresh does: it may have more keys than it
    needs."""
    choice = inputs.choice
    assert choice.inputs is not None
    assert choice.shape is not None
    if choice.rewrite is None or isinstance(choice.rewrite.write, Exchange | OverwritePartitions):
        return
    asked = []
    for leaf, floats in compared_floats(choice.shape, choice.inputs.inputs).items():
        for key in (f"{leaf} plus", f"{leaf} minus"):
            if key in inputs.read:
                if has_skipped_value(inputs.read[key].data, floats):
                    raise _refused()
            elif key in inputs.relations:
                asked.append(f"SELECT 1 FROM {inputs.relations[key]} WHERE {' OR '.join(_is_skipped_sql(*one) for one in floats.items())}")
    if asked and inputs.session.engine.rows(" UNION ALL ".join(asked), 1).rows:
        raise _refused()


def _refused() -> NotIncremental:
    message = "a row with NaN or -0.0 changed, and whether the query returns such a row depends on the files"
    return NotIncremental("nan-or-negative-zero", message)


def _is_skipped_sql(name: str, type_: Any) -> str:
    """The same in Spark's SQL, written so that Spark does not push it down to Iceberg. A text within a struct or array may look like such a
    value; then the refresh is full, without need."""
    column = quote(name)
    if isinstance(type_, str):
        return f"isnan({column}) OR (nanvl({column}, {column}) = 0 AND CAST({column} AS STRING) LIKE '-%')"
    return f"CAST({column} AS STRING) RLIKE 'NaN|-0[.]0($|[^0-9])'"
