"""a function's node + the types of its arguments -> its type in Spark; None if that type is not always the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from mvbuild.lineage.types import FRACTIONS, INTEGERS, MOST_DIGITS, Array, Decimal, Map, Type, common, is_number

Arguments = list["Type | None"]


def _names(type_: Type, classes: str, functions: str = "") -> dict[str, Type]:
    return dict.fromkeys((*classes.lower().split(), *(f"{name}()" for name in functions.split())), type_)


FIXED: Mapping[str, Type] = {
    **_names(
        "boolean",
        "EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ And Or Not Is In Between Like ILike RegexpLike RegexpILike Exists "
        "LogicalOr LogicalAnd "
        "IsNan EqualNull Any StartsWith EndsWith "
        "Contains ArrayContains ArraysOverlap Boolean ArrayAny ArrayAll LikeAny LikeAll",
        "isnull isnotnull arrays_overlap map_contains_key forall",
    ),
    **_names(
        "bigint",
        "Count CountIf ApproxDistinct IntDiv StrToUnix UnixSeconds UnixMillis UnixMicros Factorial TimestampDiff ArrayPosition WidthBucket "
        "RegrCount",
        "xxhash64 unix_timestamp crc32",
    ),
    **_names(
        "int",
        "RowNumber Rank DenseRank Ntile Length StrPosition ArraySize Levenshtein Ascii Year Month Day DayOfMonth DayOfWeek DayOfYear "
        "WeekOfYear Week Quarter Hour Minute Second BitLength UnixDate BitwiseCount RegexpCount",
        "hash char_length character_length octet_length cardinality dayofmonth find_in_set json_array_length weekday",
    ),
    **_names(
        "double",
        "Stddev StddevPop StddevSamp Variance VariancePop Corr CovarPop CovarSamp PercentRank CumeDist Sqrt Cbrt Exp Ln Log Pow Rand Randn "
        "MonthsBetween Sin Cos Tan Asin Acos Atan Atan2 Sinh Cosh Tanh Degrees Radians Kurtosis Skewness RegrSlope RegrIntercept RegrR2 Pi "
        "Rint",
        "log10 log2 log1p expm1 hypot e std",
    ),
    **_names(
        "string",
        "Upper Lower Initcap ConcatWs TimeToStr UnixToStr RegexpExtract RegexpReplace Replace Translate Repeat Trim MD5 SHA SHA2 Uuid Hex "
        "ToBase64 Soundex Space Chr ArrayToString Typeof JSONExtractScalar JSONFormat CurrentUser CurrentDatabase CurrentSchema "
        "CurrentCatalog SessionUser FormatString NumberToStr ToChar",
        "format_string printf format_number input_file_name version substring_index bin conv get_json_object to_json base64",
    ),
    **_names("date", "TsOrDsToDate CurrentDate LastDay AddMonths NextDay DateFromUnixDate DateTrunc", "make_date"),
    **_names("timestamp", "CurrentTimestamp TimestampTrunc AtTimeZone FromTimeZone", "now current_timestamp"),
    **_names("binary", "Unhex FromBase64 HexString", "unbase64"),
}
"""A sqlglot class in lower case, or `name()` for a function without a class -> its type, whatever the arguments are."""

SAME = frozenset(
    "min max first last firstvalue lastvalue nthvalue anyvalue lag lead argmin argmax arraydistinct arrayfilter "
    "arraysort sortarray arrayslice shuffle arraycompact paren ignorenulls respectnulls filter window withingroup order "
    "array_distinct() sort_array() slice() nullif distinct mode".split()
)
"""Functions whose type is that of their first argument."""
TEXTS = frozenset(("substring", "left", "right", "pad"))
"""Functions that return text of text, and bytes of bytes."""
CONCATENATIONS = frozenset(("dpipe", "concat"))
"""Functions that return text if one argument is text; otherwise it depends on all of them."""
WIDEST = frozenset(("coalesce", "greatest", "least", "arrayintersect", "arrayexcept"))
"""Functions whose type is the common type of their arguments."""
UNITS = frozenset(
    "year years yyyy yy quarter qtr month months mon mm week weeks day days dd dayofyear hour hours minute minutes second seconds "
    "millisecond milliseconds microsecond microseconds nanosecond isoyear dow doy dayofweek epoch".split()
)
"""Arguments of some functions that are keywords where a column could be."""
CALLED_WITHOUT_PARENTHESES = frozenset(
    "user session_user current_user current_date current_time current_timestamp localtimestamp grouping__id".split()
)
NUMBERS_ONLY = ("sum", "avg")
"""Numeric aggregates: arguments of these types are an error in every mode of Spark."""
NO_NUMBERS = ("boolean", "date", "timestamp", "timestamp_ntz", "binary")


def name_of(node: exp.Expr) -> str:
    """The name of a function as the tables above spell it."""
    return f"{node.name.lower()}()" if isinstance(node, exp.Anonymous) else type(node).__name__.lower()


def function_type(node: exp.Expr, arguments: Arguments) -> Type | None:
    """The type of a function. `arguments`: the types of the node's expressions, in the node's order."""
    name = name_of(node)
    fixed = FIXED.get(name)
    if fixed is not None:
        return fixed
    first = arguments[0] if arguments else None
    if name in SAME:
        return first
    if name in TEXTS:
        return "string" if first == "string" else None
    if name in CONCATENATIONS:
        return "string" if "string" in arguments else None
    if name in WIDEST:
        return common(arguments)
    rule = _RULES.get(name)
    return rule(node, first) if rule is not None else None


def _is_one_number(node: exp.Expr) -> bool:
    return isinstance(node.args.get("quantile"), exp.Literal)


def _sum(node: exp.Expr, first: Type | None) -> Type | None:  # noqa: ARG001
    if isinstance(first, Decimal):
        return Decimal(min(MOST_DIGITS, first.precision + 10), first.scale)
    if first in INTEGERS:
        return "bigint"
    return "double" if first in (*FRACTIONS, "string") else None


def _avg(node: exp.Expr, first: Type | None) -> Type | None:  # noqa: ARG001
    if isinstance(first, Decimal):
        return Decimal(min(MOST_DIGITS, first.precision + 4), min(MOST_DIGITS, first.scale + 4))
    return "double" if is_number(first) or first == "string" else None


def _ceil(node: exp.Expr, first: Type | None) -> Type | None:
    if node.args.get("decimals") is not None:
        return None
    if isinstance(first, Decimal):
        return first if first.scale == 0 else Decimal(min(MOST_DIGITS, first.precision - first.scale + 1), 0)
    return "bigint" if is_number(first) else None


def _round(node: exp.Expr, first: Type | None) -> Type | None:
    if not isinstance(first, Decimal):
        return first if is_number(first) else None
    digits = node.args.get("decimals")
    if digits is not None and not (isinstance(digits, exp.Literal) and digits.is_int):
        return None
    scale = min(int(digits.name) if digits is not None else 0, first.scale)
    return Decimal(min(first.precision - first.scale + 1 + scale, MOST_DIGITS), scale)


def _days(node: exp.Expr, first: Type | None) -> Type | None:  # noqa: ARG001
    """`datediff(end, start)` is an int; with a unit it counts that unit and is a bigint."""
    return "int" if node.args.get("unit") is None else "bigint"


def _number(node: exp.Expr, first: Type | None) -> Type | None:  # noqa: ARG001
    """A string is read as a number, of a type that depends on the function."""
    return first if is_number(first) else None


def _double(node: exp.Expr, first: Type | None) -> Type | None:  # noqa: ARG001
    return "double" if is_number(first) else None


def _percentile(node: exp.Expr, first: Type | None) -> Type | None:
    return "double" if _is_one_number(node) and is_number(first) else None


def _approximate_percentile(node: exp.Expr, first: Type | None) -> Type | None:
    return first if _is_one_number(node) and first != "string" else None


def _element(node: exp.Expr, first: Type | None) -> Type | None:  # noqa: ARG001
    if isinstance(first, Array):
        return first.element
    return first.value if isinstance(first, Map) else None


def _listed(node: exp.Expr, first: Type | None) -> Type | None:  # noqa: ARG001
    """`listagg` returns text of text, and bytes of bytes."""
    return "string" if first == "string" else None


def _array_of(node: exp.Expr, first: Type | None) -> Type | None:  # noqa: ARG001
    return Array(first) if first is not None else None


def _keys(node: exp.Expr, first: Type | None) -> Type | None:  # noqa: ARG001
    return Array(first.key) if isinstance(first, Map) else None


def _values(node: exp.Expr, first: Type | None) -> Type | None:  # noqa: ARG001
    return Array(first.value) if isinstance(first, Map) else None


def _date_add(node: exp.Expr, first: Type | None) -> Type | None:  # noqa: ARG001
    unit = node.args.get("unit")
    return "date" if unit is None or unit.name.upper() == "DAY" else None


def _extract(node: exp.Expr, first: Type | None) -> Type | None:  # noqa: ARG001
    return "int" if node.name.lower() in ("year", "month", "day", "hour", "minute", "quarter", "week", "doy", "dow") else None


def _reverse(node: exp.Expr, first: Type | None) -> Type | None:  # noqa: ARG001
    """It reverses an array, or the text of any other value."""
    return first if isinstance(first, Array) else "string" if first is not None else None


def _split(node: exp.Expr, first: Type | None) -> Type | None:  # noqa: ARG001
    return Array("string")


_RULES: Mapping[str, Callable[[exp.Expr, Type | None], Type | None]] = {
    "sum": _sum,
    "try_sum()": _sum,
    "avg": _avg,
    "try_avg()": _avg,
    "groupconcat": _listed,
    "ceil": _ceil,
    "floor": _ceil,
    "round": _round,
    "abs": _number,
    "negative": _number,
    "positive()": _number,
    "datediff": _days,
    "quantile": _percentile,
    "approxquantile": _approximate_percentile,
    "median": _double,
    "sign": _double,
    "bracket": _element,
    "arraymax": _element,
    "arraymin": _element,
    "arrayagg": _array_of,
    "arrayuniqueagg": _array_of,
    "collect_set()": _array_of,
    "mapkeys": _keys,
    "map_values()": _values,
    "tsordsadd": _date_add,
    "extract": _extract,
    "reverse": _reverse,
    "regexpsplit": _split,
    "split()": _split,
}
