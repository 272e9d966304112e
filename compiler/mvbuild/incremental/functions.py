"""A function of sqlglot's tree -> its kind for incremental refreshes: scalar, aggregate (exact, or dependent on row order), window."""

from __future__ import annotations

from sqlglot import exp

EXACT_AGGREGATES: tuple[type[exp.Expr], ...] = (
    exp.Count,
    exp.CountIf,
    exp.Sum,
    exp.Avg,
    exp.Min,
    exp.Max,
    exp.LogicalAnd,
    exp.LogicalOr,
    exp.BitwiseAndAgg,
    exp.BitwiseOrAgg,
    exp.BitwiseXorAgg,
)
"""The same rows give the same value in any order, except for sums and averages of floats."""
SUMS: tuple[type[exp.Expr], ...] = (exp.Sum, exp.Avg)
ORDERED_AGGREGATES: tuple[type[exp.Expr], ...] = (
    exp.First,
    exp.Last,
    exp.FirstValue,
    exp.LastValue,
    exp.AnyValue,
    exp.ArrayAgg,
    exp.ArrayUniqueAgg,
    exp.ArgMax,
    exp.ArgMin,
    exp.Stddev,
    exp.StddevPop,
    exp.StddevSamp,
    exp.Variance,
    exp.VariancePop,
    exp.Corr,
    exp.CovarPop,
    exp.CovarSamp,
    exp.Median,
    exp.Quantile,
)
"""Their value depends on the order of rows, at least in the last digits: every result is right, but two results may differ."""
RANKINGS: tuple[type[exp.Expr], ...] = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)
"""Window functions with equal results for rows with equal order keys."""
POSITIONS: tuple[type[exp.Expr], ...] = (exp.RowNumber, exp.Lag, exp.Lead, exp.Ntile, exp.NthValue, exp.FirstValue, exp.LastValue)
"""Window functions with different results for rows with equal order keys."""

_SCALAR_NAMES = frozenset(
    """Abs Acos Acosh And Array ArrayConcat ArrayContains ArraySize Asin Asinh Atan Atan2 Atanh Between BitwiseAnd BitwiseNot BitwiseOr
    BitwiseXor BitwiseLeftShift BitwiseRightShift Boolean Bracket Case Cast Cbrt Ceil Chr Coalesce Column Concat ConcatWs Contains Cos Cosh
    Cot DPipe DataType DataTypeParam Date DateAdd DateDiff DateSub DateTrunc DateStrToDate Day DayOfMonth DayOfWeek DayOfWeekIso DayOfYear
    DataTypeParam Degrees Div Distinct Dot EQ EndsWith Escape Exp Extract Factorial Floor GT GTE Greatest Hex Hour Identifier If ILike In
    IntDiv Interval IntervalSpan Is JSONExtract JSONExtractScalar LT LTE Least Left Length Levenshtein Like Literal Ln Log Lower
    Lpad MD5 MD5Digest Map Minute
    Mod Month Mul NEQ Neg Not Null NullSafeEQ NullSafeNEQ Nullif Nvl2 Or Pad Paren Pow Quarter RLike Radians RegexpExtract
    RegexpLike RegexpReplace Repeat Replace Reverse Right Round SHA SHA2 SafeDivide Second Sign Sin Sinh Soundex Split SplitPart Sqrt
    StarMap StartsWith StrPosition StrToDate StrToTime Struct Sub Add Substring SubstringIndex Tan Tanh TimeStrToTime TimestampTrunc
    TimeToStr ToChar Translate Trim Trunc TryCast TsOrDsAdd TsOrDsDiff TsOrDsToDate TsOrDsToTimestamp Unhex UnixToTime
    UnixToTimeStr Upper Var Week WeekOfYear
    Year PropertyEQ Tuple AddMonths LastDay MonthsBetween NextDay ToNumber Initcap Ascii Initcap Sha1 Bin Unicode
    DateFromParts MakeInterval TimestampFromParts ArraySum ArraysZip SortArray ArrayToString MapFromArrays Kwarg""".split()
)
SCALARS: tuple[type[exp.Expr], ...] = tuple(
    found for name in sorted(_SCALAR_NAMES) if isinstance(found := getattr(exp, name, None), type) and issubclass(found, exp.Expr)
)
"""Expressions whose value depends only on their own row. Others prevent an incremental refresh: a function of Spark that sqlglot does not
know could be an aggregate."""
SCALAR_CALLS = frozenset(
    """abs acos add_months array array_contains array_distinct array_join array_max array_min array_size ascii base64 bin bround cbrt ceil
    ceiling char_length character_length chr concat concat_ws contains conv cos crc32 date date_add date_diff date_format date_sub
    date_trunc dateadd datediff day dayofmonth dayofweek dayofyear decode degrees e element_at elt encode endswith exp expm1 factorial
    find_in_set floor format_number format_string from_unixtime greatest hash hex hour hypot if ifnull initcap instr isnan isnotnull isnull
    last_day lcase least left length levenshtein ln locate log log10 log1p log2 lower lpad ltrim make_date map_keys map_values md5 minute
    mod month months_between named_struct nanvl negative next_day nullif nvl nvl2 octet_length overlay pi pmod positive pow power quarter
    radians regexp_count regexp_extract regexp_replace repeat replace reverse right rint round rpad rtrim second sha sha1 sha2 sign signum
    sin size slice sort_array soundex split split_part sqrt startswith substr substring substring_index tan timestamp_micros
    timestamp_millis timestamp_seconds to_date to_number translate trim trunc try_add try_divide try_multiply try_subtract ucase unbase64
    unhex upper weekday weekofyear width_bucket xxhash64 year zeroifnull nullifzero btrim bit_length bit_count shiftleft shiftright
    array_position array_remove array_sort array_union array_except array_intersect flatten sequence struct try_element_at try_to_number
    to_char to_binary try_to_timestamp try_to_date to_timestamp to_timestamp_ntz to_timestamp_ltz to_unix_timestamp from_utc_timestamp
    to_utc_timestamp convert_timezone make_timestamp unix_date unix_micros unix_millis unix_seconds date_from_unix_date to_json from_json
    get_json_object parse_url url_encode url_decode""".split()
)
"""Functions of Spark by name, which sqlglot does not parse."""
GENERATORS: tuple[type[exp.Expr], ...] = (exp.Explode, exp.Posexplode, exp.ExplodeOuter, exp.PosexplodeOuter)


def is_scalar(node: exp.Expr) -> bool:
    """Whether this single node (not the nodes below it) is an operator or function of its own row."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in SCALAR_CALLS
    return type(node) in SCALARS


def is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, EXACT_AGGREGATES + ORDERED_AGGREGATES)
