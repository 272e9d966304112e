"""Spark SQL -> the same query in another dialect, or why it cannot be said there. What is not sure to mean the same is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, Dialects
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.generator import Generator
from sqlglot.parser import Parser

from mvbuild.diagnostics import Diagnostic, did_you_mean, error
from mvbuild.graph.model import ModelNode
from mvbuild.parse.dialect import parse, tokenize

DIALECTS = tuple(sorted({d.value for d in Dialects} - {"", "dax", "prql", "solr", "tableau"}))
"""Those of sqlglot that are SQL of an engine."""

_STANDARD = frozenset(
    "abs and any avg case cast ceil coalesce count cube currentdate currenttimestamp denserank exists exp extract floor if jsoncast lag "
    "lastvalue firstvalue lead length ln lower max min not ntile nullif or pow rank rollup round rownumber sqrt stddevpop stddevsamp sum "
    "trim trycast upper variance variancepop substring groupingsets".split()
)
"""Functions (as sqlglot names them) that every engine has, with one meaning for arguments that are not null."""
_SPARK_LIKE = frozenset({"spark", "spark2", "databricks", "hive"})


class Inexpressible(Exception):
    """A query, or a part of it, that a dialect cannot say or does not surely understand in the same way."""


def translate(text: str, dialect: str, catalog: str) -> str:
    """A definition in another dialect. Names lose the catalog, which is called differently by each engine: a view's names are completed
    from the catalog that holds it."""
    tree = _read(text)
    _strip_catalog(tree, catalog)
    if _read(tree.sql("spark", comments=False)) != tree:
        raise Inexpressible("sqlglot does not keep its meaning")
    for problem in _problems(tree, dialect):
        raise Inexpressible(problem)
    try:
        wanted = _comparable(tree)
        said = tree.sql(dialect, comments=False, unsupported_level=ErrorLevel.RAISE)
        back = Dialect.get_or_raise(dialect).parse(said)[0]
        again = _comparable(back) if back else ""
    except (SqlglotError, RecursionError) as exc:
        raise Inexpressible(str(exc).splitlines()[0]) from exc
    if again != wanted:
        raise Inexpressible(f"it would read {_difference(again, wanted)}")
    return said


def unknown_dialects(node: ModelNode) -> list[Diagnostic]:
    """One diagnostic for each name that is no dialect."""
    config = node.model.config
    unknown = [d for d in config.dialects if d.lower() not in DIALECTS]
    return [
        error("bad-config", f"There is no SQL dialect '{d}'", config.spans.get("dialects"), help=did_you_mean(d.lower(), DIALECTS))
        for d in unknown
    ]


def inexpressible(node: ModelNode, dialect: str, why: Inexpressible) -> Diagnostic:
    message = f"The definition of '{node.model.name}' cannot be written for {dialect}: {why}"
    return error("unsupported-dialect", message, node.model.config.spans.get("dialects") or node.model.file.line_span(1))


def _comparable(tree: exp.Expr) -> str:
    """Each dialect quotes the words that it reserves: here all names are quoted."""
    return tree.sql("spark", comments=False, identify=True, unsupported_level=ErrorLevel.RAISE)


def _read(text: str) -> exp.Expr:
    try:
        trees = parse(tokenize(text), text)
    except (SqlglotError, RecursionError) as exc:
        raise Inexpressible("sqlglot cannot parse it") from exc
    tree = trees[0] if len(trees) == 1 else None
    if tree is None:
        raise Inexpressible("sqlglot cannot parse it")
    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()
    for cast in list(tree.find_all(exp.TryCast)):
        # Spark 4 is in ANSI mode: CAST fails where sqlglot, which knows older ones, has it give null.
        if not cast.args.get("safe"):
            cast.replace(exp.Cast(**{**cast.args, "safe": None}))
    for division in tree.find_all(exp.Div):
        if _is_plain(division):
            division.set("typed", True)
            division.set("safe", False)
    return tree


def _is_plain(division: exp.Div) -> bool:
    """`CAST(a AS DOUBLE) / NULLIF(b, 0)`: neither types nor a division by zero make it differ between engines."""
    above, below = division.this, division.expression
    is_double = isinstance(above, exp.Cast) and above.is_type("double")
    return is_double and isinstance(below, exp.Nullif) and below.expression == exp.Literal.number(0)


def _strip_catalog(tree: exp.Expr, catalog: str) -> None:
    for table in tree.find_all(exp.Table):
        parts = table.parts
        if len(parts) > 3:
            raise Inexpressible(f"other engines have no nested namespaces, as in {'.'.join(p.name for p in parts)}")
        if len(parts) == 3 and parts[0].name != catalog:
            raise Inexpressible(f"{'.'.join(p.name for p in parts)} stands in another catalog than the view")
        table.set("catalog", None)


def _problems(tree: exp.Expr, dialect: str) -> Iterator[str]:
    """What sqlglot would pass on though the engine does not have it."""
    for node in tree.walk():
        if isinstance(node, exp.Func) and not _has_function(type(node), dialect):
            yield f"it may not have the function {node.name if isinstance(node, exp.Anonymous) else node.sql_name()}"
        for what, (applies, dialects) in _OF_SOME.items():
            if applies(node) and dialect not in dialects:
                yield f"it has no {what}"


_OF_SOME: Mapping[str, tuple[Callable[[exp.Expr], bool], frozenset[str]]] = {
    "SEMI or ANTI join": (
        lambda node: isinstance(node, exp.Join) and bool({"SEMI", "ANTI"} & {node.kind, node.side}),
        _SPARK_LIKE | {"duckdb", "clickhouse"},
    ),
    "* EXCEPT": (
        lambda node: isinstance(node, exp.Star) and any(node.args.values()),
        _SPARK_LIKE | {"bigquery", "duckdb", "snowflake", "clickhouse"},
    ),
    "GROUP BY ALL": (
        lambda node: isinstance(node, exp.Group) and bool(node.args.get("all")),
        _SPARK_LIKE | {"bigquery", "duckdb", "snowflake", "clickhouse"},
    ),
    "time travel": (lambda node: isinstance(node, exp.Version), _SPARK_LIKE | {"trino", "presto", "athena"}),
    "PIVOT": (lambda node: isinstance(node, exp.Pivot), _SPARK_LIKE),
}
"""Constructs that only some dialects have -> how they are told, and the dialects."""


def _has_function(kind: type[exp.Func], dialect: str) -> bool:
    """Whether the dialect's authors thought of the function; what sqlglot does not know at all, no dialect has."""
    if kind is exp.Anonymous or kind is exp.AnonymousAggFunc:
        return False
    if kind.key in _STANDARD or dialect in _SPARK_LIKE:
        return True
    found = Dialect.get_or_raise(dialect)
    generator, parser, method = found.generator_class, found.parser_class, f"{kind.key}_sql"
    is_written = generator.TRANSFORMS.get(kind) is not Generator.TRANSFORMS.get(kind)
    is_built = getattr(generator, method, None) is not getattr(Generator, method, None)
    is_read = any(parser.FUNCTIONS.get(name) is not Parser.FUNCTIONS.get(name) for name in kind.sql_names())
    return is_written or is_built or is_read


def _difference(found: str, wanted: str) -> str:
    """The first words that differ, with a little around them."""
    words, others = found.replace("`", "").split(), wanted.replace("`", "").split()
    at = next((i for i, (a, b) in enumerate(zip(words, others, strict=False)) if a != b), min(len(words), len(others)))
    return f'"{" ".join(words[max(at - 2, 0) : at + 6])}" for "{" ".join(others[max(at - 2, 0) : at + 6])}"'
