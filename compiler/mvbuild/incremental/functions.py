"""A function of sqlglot's tree -> its kind for incremental refreshes: scalar, aggregate (exact, or dependent on row order), window,
generator."""

from __future__ import annotations

from sqlglot import exp

from mvbuild.incremental.spark_registry import AGGREGATES, GENERATORS, SCALARS

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
RANKINGS: tuple[type[exp.Expr], ...] = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)
"""Window functions with equal results for rows with equal order keys."""
POSITIONS: tuple[type[exp.Expr], ...] = (exp.RowNumber, exp.Lag, exp.Lead, exp.Ntile, exp.NthValue)
"""Window functions with different results for rows with equal order keys."""

_SCALAR_NAMES = frozenset(
    """Abs Acos Acosh All And Any Array ArrayConcat ArrayContains ArraySize Asin Asinh Atan Atan2 Atanh Between BitwiseAnd BitwiseNot
    BitwiseOr BitwiseXor BitwiseLeftShift BitwiseRightShift Boolean Bracket Case Cast Cbrt Ceil Chr Coalesce Column Concat ConcatWs
    Contains Cos Cosh Cot DPipe DataType DataTypeParam Date DateAdd DateDiff DateSub DateTrunc DateStrToDate Day DayOfMonth DayOfWeek
    DayOfWeekIso DayOfYear Degrees Div Distinct Dot EQ EndsWith Escape Exp Extract Factorial Floor GT GTE Greatest Hex Hour Identifier
    If ILike In IntDiv Interval IntervalSpan Is JSONExtract JSONExtractScalar LT LTE Least Left Length Levenshtein Like Literal Ln Log
    Lower Lpad MD5 MD5Digest Map Minute Mod Month Mul NEQ Neg Not Null NullSafeEQ NullSafeNEQ Nullif Nvl2 Or Overlay Pad Paren Pow
    Quarter RLike Radians RegexpExtract RegexpLike RegexpReplace Repeat Replace Reverse Right Round SHA SHA2 SafeDivide Second Sign Sin
    Sinh Soundex Split SplitPart Sqrt StarMap StartsWith StrPosition StrToDate StrToTime Struct Sub Add Substring SubstringIndex Tan
    Tanh TimeStrToTime TimestampTrunc TimeToStr ToChar Translate Trim Trunc TryCast TsOrDsAdd TsOrDsDiff TsOrDsToDate TsOrDsToTimestamp
    Unhex UnixToTime UnixToTimeStr Upper Var Week WeekOfYear Year PropertyEQ Tuple AddMonths LastDay MonthsBetween NextDay ToNumber
    Initcap Ascii Sha1 Bin Unicode DateFromParts MakeInterval TimestampFromParts ArraySum ArraysZip SortArray ArrayToString
    MapFromArrays VarMap HexString Kwarg""".split()
)
_SCALAR_TYPES: tuple[type[exp.Expr], ...] = tuple(
    found for name in sorted(_SCALAR_NAMES) if isinstance(found := getattr(exp, name, None), type) and issubclass(found, exp.Expr)
)
"""Expressions of sqlglot whose value is that of their own row. Functions are listed by `spark_registry`."""
OTHER_CALLS = frozenset("timestampadd timestampdiff".split())
"""Scalar functions that Spark's grammar has and its registry has not."""
_WITHOUT_ARGUMENTS = frozenset(("unix_timestamp",))
"""Scalar functions that read the clock if they have no argument."""
NULL_OF_NOTHING = frozenset(
    """any_value corr covar_pop covar_samp first first_value last last_value max_by median min_by mode percentile percentile_approx std
    stddev stddev_pop stddev_samp var_pop var_samp variance""".split()
)
"""Aggregates without a class of their own that give NULL for no rows."""
_WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_GENERATORS: tuple[type[exp.Expr], ...] = (exp.Explode, exp.Posexplode, exp.ExplodeOuter, exp.PosexplodeOuter)


def called(node: exp.Expr) -> str:
    """The name of a function that has no class of its own; empty for anything else."""
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def is_scalar(node: exp.Expr) -> bool:
    """Whether this one node (not what is below it) is an operator or a function of its own row."""
    name = called(node)
    if name in _WITHOUT_ARGUMENTS and not node.expressions:
        return False
    return name in SCALARS or name in OTHER_CALLS if name else type(node) in _SCALAR_TYPES


def is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, EXACT_AGGREGATES) or called(node) in AGGREGATES


def is_ordered_aggregate(node: exp.Expr) -> bool:
    """Whether its value depends on the order of rows, in the last digits at least: right whenever it is computed, but not the same twice.
    An aggregate that no rule knows counts as one."""
    return is_aggregate(node) and not isinstance(node, EXACT_AGGREGATES)


def unwrapped(node: exp.Expr) -> exp.Expr:
    """An aggregate or window function without FILTER, WITHIN GROUP and IGNORE NULLS."""
    while isinstance(node, _WRAPPERS):
        node = node.this
    return node


def is_generator(node: exp.Expr) -> bool:
    return isinstance(node, _GENERATORS) or called(node) in GENERATORS
