"""SQL of the added and of the removed rows -> SQL of what remains of both when equal rows cancel out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mvbuild.names import quote
from mvbuild.ports.changes import Side

Types = Mapping[str, Any]
"""Column -> its Iceberg type in JSON form."""

_FLOATS = {"float": "FLOAT", "double": "DOUBLE"}


def is_comparable(type_: Any) -> bool:
    """Whether equality of two values means that they are the same. Maps and variants cannot be compared, and GROUP BY treats 0.0 like -0.0,
    whose texts differ: a float column is compared as text, a float inside another value cannot be."""
    return _float(type_) is not None or _is_exact(type_)


def _is_exact(type_: Any) -> bool:
    if isinstance(type_, str):
        return type_ != "variant" and type_ not in _FLOATS
    if type_["type"] == "map":
        return False
    inner = [field["type"] for field in type_["fields"]] if type_["type"] == "struct" else [type_["element"]]
    return all(map(_is_exact, inner))


def _float(type_: Any) -> str | None:
    return _FLOATS.get(type_) if isinstance(type_, str) else None


def net_sql(plus: str, minus: str, types: Types) -> str:
    """Each row, and how many more copies of it `plus` has than `minus`. The text of a float converts back to the same float.

    Rows are shuffled before they are counted. A task that reads files of one side finds no equal rows, and grouping them there first costs
    a third of the time (measured with 2.4 million rows on each side).
    """
    weight, columns = _free("mvbuild_weight", types), ", ".join(map(quote, types))
    shown = ", ".join(_cast(name, "STRING") if _float(type_) else quote(name) for name, type_ in types.items())
    both = " UNION ALL ".join(f"SELECT {shown}, {by} AS {weight} FROM ({sql})" for by, sql in ((1, plus), (-1, minus)))
    together = f"SELECT * FROM ({both}) DISTRIBUTE BY {columns}"
    return f"SELECT {columns}, sum({weight}) AS {weight} FROM ({together}) GROUP BY {columns} HAVING sum({weight}) <> 0"


def net_side(net: str, side: Side, types: Types) -> str:
    """The rows of which one side has more, in all their copies. `net`: the name of the result of the other query."""
    weight = _free("mvbuild_weight", types)
    number = weight if side == "plus" else f"-{weight}"
    columns = ", ".join(_cast(name, cast) if (cast := _float(type_)) else quote(name) for name, type_ in types.items())
    copies = f"LATERAL VIEW explode(array_repeat(1, CAST({number} AS INT))) copies AS {_free('mvbuild_copy', types)}"
    return f"SELECT {columns} FROM {net} {copies} WHERE {number} > 0"


def _cast(name: str, type_: str) -> str:
    return f"CAST({quote(name)} AS {type_}) AS {quote(name)}"


def _free(name: str, types: Types) -> str:
    """A name that no column has."""
    taken = {column.lower() for column in types}
    while name in taken:
        name += "_"
    return name
