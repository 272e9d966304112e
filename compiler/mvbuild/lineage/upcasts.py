"""two types -> whether Spark converts one to the other without an explicit CAST: where no value is lost, and to text."""

from __future__ import annotations

from mvbuild.lineage.types import Array, Decimal, Map, Struct, Type, as_decimal, is_number

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")
_MOMENTS = frozenset(
    (
        ("date", "timestamp"),
        ("date", "timestamp_ntz"),
        ("timestamp", "timestamp_ntz"),
        ("timestamp_ntz", "timestamp"),
    )
)


def may_upcast(one: Type, to: Type) -> bool:
    """Spark's `Cast.canUpCast`, except its conditions on nullability."""
    if one in (to, "void"):
        return True
    if isinstance(one, Array) and isinstance(to, Array):
        return _parts([one.element], [to.element])
    if isinstance(one, Map) and isinstance(to, Map):
        return _parts([one.key, one.value], [to.key, to.value])
    if isinstance(one, Struct) and isinstance(to, Struct):
        return _parts([type_ for _, type_ in one.fields], [type_ for _, type_ in to.fields])
    if isinstance(one, Array | Map | Struct) or isinstance(to, Array | Map | Struct):
        return False
    if is_number(one) and is_number(to):
        return _may_widen(one, to)
    return (one, to) in _MOMENTS or (to == "string" and one != "variant")


def _parts(ours: list[Type | None], theirs: list[Type | None]) -> bool:
    """Unknown types do not prevent an upcast."""
    pairs = zip(ours, theirs, strict=False)
    return len(ours) == len(theirs) and all(one is None or to is None or may_upcast(one, to) for one, to in pairs)


def _may_widen(one: Type, to: Type) -> bool:
    if isinstance(one, str) and isinstance(to, str):
        return _NUMBERS.index(one) <= _NUMBERS.index(to)
    if isinstance(to, Decimal):
        found = as_decimal(one)
        return found is not None and _fits(found, to)
    whole = as_decimal(to)
    return isinstance(one, Decimal) and whole is not None and one.scale == 0 and one.precision < whole.precision


def _fits(one: Decimal, to: Decimal) -> bool:
    return one.scale <= to.scale and one.precision - one.scale <= to.precision - to.scale
