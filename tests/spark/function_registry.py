"""Spark's function registries -> incremental/spark_registry.py and parse/newer_functions.py: what each built-in function is to a refresh.

    python tests/spark/function_registry.py --ask      with each version of PySpark: saves what it says in tests/spark/registries
    python tests/spark/function_registry.py --write    writes the modules from what was saved

Spark says of each expression whether it is deterministic: it is asked about the examples of its documentation. It calls deterministic, too,
what gives the same within one query only: `NOT_OF_THE_ROW` are those. A function without an example that Spark can read is left out.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SAVED = Path(__file__).resolve().parent / "registries"
OTHER = "other"
"""The kind of what is not the same each time, not of a row, or not known."""

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
OF_THE_ROW = frozenset(("equal_null",))
"""In `misc_funcs` of Spark 3.5 all the same."""
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


def kinds(session: Any) -> dict[str, str]:
    """The name of each function -> what it is to a refresh."""
    return {function.name: _kind(session, function) for function in functions(session)}


def _kind(session: Any, function: Function) -> str:
    if function.name in NOT_OF_THE_ROW:
        return OTHER
    if function.is_generator:
        return "generator"
    if function.is_aggregate:
        return "aggregate"
    of_the_row = function.group in GROUPS or function.name in OF_THE_ROW
    return "scalar" if of_the_row and is_deterministic(session, function) else OTHER


def saved() -> dict[str, dict[str, str]]:
    """Minor version of Spark -> its functions."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(SAVED.glob("*.json"))}


def minor(session: Any) -> str:
    return ".".join(session.version.split(".")[:2])


def of_refreshes(versions: Mapping[str, Mapping[str, str]]) -> str:
    """The text of incremental/spark_registry.py. A function that two versions disagree about has no kind."""
    found: dict[str, set[str]] = defaultdict(set)
    for version in versions.values():
        for name, kind in version.items():
            found[name].add(kind)
    of = {kind: [name for name, seen in found.items() if seen == {kind}] for kind in ("scalar", "aggregate", "generator")}
    lines = _head(
        f"The built-in functions of Spark {_listed(versions)} by what they are to a refresh: names -> scalar, aggregate or generator."
    )
    lines += _set("SCALARS", of["scalar"], "Deterministic functions of the values of one row, in every version that has them.")
    lines += _set("AGGREGATES", of["aggregate"], "Aggregate functions, whether or not their value depends on the order of rows.")
    lines += _set("GENERATORS", of["generator"], "Functions that make rows of one row.")
    return "\n".join(lines) + "\n"


def of_versions(versions: Mapping[str, Mapping[str, str]]) -> str:
    """The text of parse/newer_functions.py."""
    every = set().union(*versions.values())
    lines = _head(f"version of Spark -> the functions of Spark {_listed(versions)} that it does not have.")
    lines += ["NEWER_THAN = {"]
    for version, has in versions.items():
        lines += [f'    "{version}": frozenset(', *_words(sorted(every - has.keys()), 8), "    ),"]
    return "\n".join([*lines, "}"]) + "\n"


def _listed(versions: Mapping[str, object]) -> str:
    *first, last = versions
    return f"{', '.join(first)} and {last}"


def _head(what: str) -> list[str]:
    made = "Made by `python tests/spark/function_registry.py --write`, which reads what Spark's registry says; a test says when it is out of date."
    return [f'"""{what}', "", made, '"""', "", "from __future__ import annotations", ""]


def _set(name: str, members: list[str], doc: str) -> list[str]:
    return [f"{name} = frozenset(", *_words(members, 4), ")", f'"""{doc}"""']


def _words(members: Iterable[str], indent: int) -> list[str]:
    space = " " * indent
    text = textwrap.fill(" ".join(sorted(members)), 130 + indent, initial_indent=space, subsequent_indent=space, break_on_hyphens=False)
    return [f'{space}"""', *filter(None, [text]), f'{space}""".split()']


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ask", action="store_true", help="ask the installed Spark, and save what it says")
    parser.add_argument("--write", action="store_true", help="write the two modules")
    chosen = parser.parse_args()
    if chosen.ask:
        from pyspark.sql import SparkSession

        session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        SAVED.mkdir(exist_ok=True)
        (SAVED / f"{minor(session)}.json").write_text(json.dumps(kinds(session), indent=0) + "\n", encoding="utf-8")
        session.stop()
    if chosen.write:
        for file, text in MODULES.items():
            (ROOT / file).write_text(text(saved()), encoding="utf-8")


MODULES = {"compiler/mvbuild/incremental/spark_registry.py": of_refreshes, "compiler/mvbuild/parse/newer_functions.py": of_versions}

if __name__ == "__main__":
    main()
