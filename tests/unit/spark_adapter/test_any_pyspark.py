"""What differs between the versions of PySpark, with objects that have only the methods of one version."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mvbuild.adapters.spark.any_pyspark import all_settings, condition_of, contexts_of, retry
from mvbuild.adapters.spark.connect import _is_for_good
from mvbuild.adapters.spark.errors import _portable
from unit.spark_adapter.settings import conf_with


class Of3(Exception):
    """An exception of PySpark 3.5, in a process with a JVM."""

    def getErrorClass(self) -> str:  # noqa: N802
        return "DIVIDE_BY_ZERO"


class Of4(Exception):
    """An exception of PySpark 4, where the older method warns."""

    def getCondition(self) -> str:  # noqa: N802
        return "DIVIDE_BY_ZERO"

    def getErrorClass(self) -> str:  # noqa: N802
        raise AssertionError("it is deprecated, and prints a warning")

    def getQueryContext(self) -> list[Any]:  # noqa: N802
        kinds = (SimpleNamespace(name=name) for name in ("SQL", "DataFrame"))
        return [SimpleNamespace(contextType=lambda kind=kind: kind) for kind in kinds]


class Of3Remote(Exception):
    """An exception of PySpark 3.5 over Spark Connect: the condition is in its message only."""

    def getErrorClass(self) -> None:  # noqa: N802
        return None


def test_all_settings_of_a_session() -> None:
    settings = {"spark.sql.ansi.enabled": "true", "my.password": "x", "of.java": "-Da=b -> c\n-Dd", "empty": ""}
    assert all_settings(SimpleNamespace(conf=conf_with(settings))) == settings


def test_the_condition_of_an_error() -> None:
    assert [condition_of(error) for error in (Of3(), Of4(), Of3Remote(), ValueError())] == ["DIVIDE_BY_ZERO", "DIVIDE_BY_ZERO", "", ""]
    assert [len(contexts_of(error)) for error in (Of3(), Of4(), Of3Remote())] == [0, 1, 0]


def test_a_condition_that_is_only_in_the_message() -> None:
    sql = "SELECT k FROM nothing"
    text = "[TABLE_OR_VIEW_NOT_FOUND] The table or view `nothing` cannot be found.; line 1 pos 14;\n'Project ['k]"
    found = _portable(Of3Remote(text), sql)
    assert (found.condition, found.place) == ("TABLE_OR_VIEW_NOT_FOUND", (14, 21))
    prefixed = _portable(Of3Remote("(org.apache.spark.SparkArithmeticException) [DIVIDE_BY_ZERO] Division by zero."), sql)
    assert prefixed.condition == "DIVIDE_BY_ZERO"


def test_a_setting_of_the_server_is_left_as_it_is() -> None:
    assert _is_for_good(Of3Remote("[CANNOT_MODIFY_CONFIG] Cannot modify the value of the Spark config: spark.driver.memory."))
    assert not _is_for_good(Of3Remote("[INVALID_CONF_VALUE] x"))


def test_how_often_a_client_tries_again() -> None:
    older = SimpleNamespace(_retry_policy={"max_retries": 15, "jitter": 500})
    retry(older, 3)
    assert older._retry_policy == {"max_retries": 3, "jitter": 500}
    retry(older, None)
    assert older._retry_policy["max_retries"] == 15
