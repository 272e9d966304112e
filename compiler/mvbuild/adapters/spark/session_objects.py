"""SQL text + its DataFrame -> QueryError if the query uses objects that only this session has: a variable, a temporary function."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mvbuild.adapters.spark.any_pyspark import explained, is_remote
from mvbuild.adapters.spark.releases import minor_of
from mvbuild.parse.dialect import tokenize
from mvbuild.parse.newer_functions import NEWER_THAN
from mvbuild.parse.user_functions import called_functions, user_functions
from mvbuild.ports.engine import QueryError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SESSION_OBJECT = "mvbuild.SESSION_OBJECT"
"""The condition of the QueryError."""
_VARIABLE = re.compile(r"variablereference\((?:system\.session\.)?(`[^`]*`|\w+)=")
_USER_CODE = re.compile(r"\b\w*(?:EvalPython|InPandas|PythonUDTF|PythonUDF)\w*")
"""Operators of a plan that run Python."""


def require_shared(session: SparkSession, frame: DataFrame, sql: str) -> None:
    """Raise QueryError for such objects: sessions that read an MV or view do not have them."""
    for name in called_functions(sql):
        if _is_temporary(session, name):
            last = name.rpartition(".")[2].strip("`").lower()
            token = next(t for t in user_functions(sql) if t.text.lower() == last)
            raise _refusal(f"{name} is a function of this session only", token.start, token.end + 1)
    by_text = is_remote(frame) or minor_of(session.version) == "4.0"
    uses_variable, runs_user_code, plan = _asked(session, sql) if by_text else _analyzed(frame)
    if uses_variable:
        found = _VARIABLE.search(plan)
        name = found[1].strip("`") if found else ""
        place = next(((t.start, t.end + 1) for t in tokenize(sql) if t.text.lower() == name.lower()), (0, 1))
        raise _refusal(f"{name or 'a name in it'} is a variable of this session only", *place)
    if runs_user_code:
        raise _refusal("it calls a function that was registered in this session only, under the name of one of Spark's", 0, 1)


def require_builtin(version: str, sql: str) -> None:
    """Raise QueryError for a function of the user with the name of one that a newer Spark has: mvbuild takes it for that one. `version`:
    the minor version of the Spark that runs `sql`."""
    newer = NEWER_THAN.get(version, frozenset())
    for token in user_functions(sql, without=newer) if newer else ():
        if token.text.lower() in newer and not sql[: token.start].rstrip().endswith("."):
            message = f"{token.text} is your own function on Spark {version}, and newer versions have a built-in one: write its full name"
            raise QueryError(message, condition=SESSION_OBJECT, start=token.start, end=token.end + 1)


def _refusal(what: str, start: int, end: int) -> QueryError:
    return QueryError(f"{what}: no other session that reads the view has it", condition=SESSION_OBJECT, start=start, end=end)


def _is_temporary(session: SparkSession, name: str) -> bool:
    """Whether a function is temporary. The description of a permanent one in Spark's catalog contains a database."""
    from pyspark.errors import PySparkException

    try:
        rows = session.sql(f"DESCRIBE FUNCTION {name}").collect()
    except PySparkException:
        return False
    described = next((str(row[0]) for row in rows if str(row[0]).startswith("Function: ")), "")
    return bool(described) and "." not in described


def _analyzed(frame: DataFrame) -> tuple[bool, bool, str]:
    """Whether it reads a variable, whether it runs user code, and the plan."""
    plan = frame._jdf.queryExecution().analyzed()
    # By its full name, Java looks for it once, and not once for each part of it.
    patterns = getattr(frame.sparkSession._jvm, "org.apache.spark.sql.catalyst.trees.TreePattern")
    runs_user_code = any(plan.containsPattern(pattern) for pattern in (patterns.PYTHON_UDF(), patterns.SCALA_UDF()))
    # Spark 3.5 has no variables.
    variable = None if frame.sparkSession.version.startswith("3.") else patterns.VARIABLE_REFERENCE()
    return variable is not None and bool(plan.containsPattern(variable)), runs_user_code, str(plan.toString())


def _asked(session: SparkSession, sql: str) -> tuple[bool, bool, str]:
    """The same as text: a Connect server returns nothing else, and Spark 4.0 has no pattern for variables."""
    text = explained(session, sql)
    analyzed = text.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]
    return _VARIABLE.search(analyzed) is not None, _USER_CODE.search(text) is not None, analyzed
