"""Spark's function registry -> compiler/mvbuild/incremental/spark_registry.py: what each built-in function is to a refresh.

    python tests/spark/function_registry.py > compiler/mvbuild/incremental/spark_registry.py

Spark says of each expression whether it is deterministic: it is asked about the examples of its documentation. It calls deterministic, too,
what gives the same within one query only: `NOT_OF_THE_ROW` are those. A function without an example that Spark can read is left out.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

NOT_OF_THE_ROW = frozenset(
    """curdate current_catalog current_database current_date current_schema current_time current_timestamp current_timezone
    current_user localtimestamp now session_user user version
    collate grouping grouping_id sentences session_window window window_time""".split()
)
"""What depends on a clock, a user or a session, what gives a type another equality, what depends on the JVM's tables of languages, and
whatever is not an expression of a row."""
GROUPS = frozenset(
    """array_funcs bitwise_funcs collection_funcs conditional_funcs conversion_funcs csv_funcs datetime_funcs hash_funcs json_funcs
    lambda_funcs map_funcs math_funcs predicate_funcs string_funcs struct_funcs url_funcs variant_funcs xml_funcs""".split()
)
"""Spark's groups of functions of their arguments. Not `misc_funcs`: some of them read the session, files or random numbers."""
EXAMPLE = re.compile(r">\s*(SELECT.*?);\s*$", re.MULTILINE | re.DOTALL)
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
GENERATOR = f"{_EXPRESSIONS}.Generator"
AGGREGATE = f"{_EXPRESSIONS}.aggregate.AggregateFunction"
ASKED = 3
"""Examples of each function."""


@dataclass(frozen=True)
class Function:
    name: str
    group: str
    is_generator: bool
    is_aggregate: bool
    examples: tuple[str, ...]


def functions(session: Any) -> Iterator[Function]:
    jvm, registry = session._jvm, session._jsparkSession.sessionState().functionRegistry()
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    generator, aggregate = (jvm.java.lang.Class.forName(name, True, loader) for name in (GENERATOR, AGGREGATE))
    listed = registry.listFunction().iterator()
    names = set()
    while listed.hasNext():
        names.add(listed.next().funcName())
    for name in sorted(name for name in names if re.fullmatch(r"\w+", name)):
        info = registry.lookupFunction(jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name)).get()
        kind = jvm.java.lang.Class.forName(info.getClassName(), True, loader)
        examples = tuple(EXAMPLE.findall(info.getExamples()))[:ASKED]
        # Some are made by a builder, whose class says nothing: then the group does.
        yield Function(
            name=name,
            group=info.getGroup(),
            is_generator=generator.isAssignableFrom(kind) or info.getGroup() == "generator_funcs",
            is_aggregate=info.getGroup() != "window_funcs" and (aggregate.isAssignableFrom(kind) or info.getGroup() == "agg_funcs"),
            examples=examples,
        )


def is_deterministic(session: Any, function: Function) -> bool:
    found = [_is_deterministic(session, example) for example in function.examples]
    return True in found and False not in found


def _is_deterministic(session: Any, example: str) -> bool | None:
    from pyspark.errors import PySparkException

    try:
        plan = session.sql(example)._jdf.queryExecution().analyzed()
        # An aggregate that is in another group, and was made by a builder.
        return bool(plan.deterministic()) and plan.nodeName() != "Aggregate"
    except PySparkException:
        return None


def module(session: Any) -> str:
    scalars, aggregates, generators = [], [], []
    for function in functions(session):
        if function.name in NOT_OF_THE_ROW:
            continue
        if function.is_generator:
            generators.append(function.name)
        elif function.is_aggregate:
            aggregates.append(function.name)
        elif function.group in GROUPS and is_deterministic(session, function):
            scalars.append(function.name)
    version = ".".join(session.version.split(".")[:2])
    lines = [
        f'"""The built-in functions of Spark {version} by what they are to a refresh: names -> scalar, aggregate or generator.',
        "",
        "Made by `python tests/spark/function_registry.py`, which asks Spark's registry; a test says when it is out of date.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
    ]
    lines += _set("SCALARS", scalars, "Deterministic functions of the values of one row.")
    lines += _set("AGGREGATES", aggregates, "Aggregate functions, whether or not their value depends on the order of rows.")
    lines += _set("GENERATORS", generators, "Functions that make rows of one row.")
    return "\n".join(lines) + "\n"


def _set(name: str, members: list[str], doc: str) -> list[str]:
    text = textwrap.fill(" ".join(sorted(members)), 134, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return [f"{name} = frozenset(", '    """', text, '    """.split()', ")", f'"""{doc}"""']


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    print(module(SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()), end="")
