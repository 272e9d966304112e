"""The versions of Spark: what goes with each, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mvbuild.adapters.spark.releases import RELEASES, installed_version, minor_of, release_of
from mvbuild.adapters.spark.session_objects import require_builtin
from mvbuild.parse.newer_functions import NEWER_THAN
from mvbuild.parse.spark_functions import FUNCTIONS
from mvbuild.ports.engine import EngineError, QueryError
from mvbuild.ports.session import ANSI, SPARK_VERSION, configured_session
from mvbuild.storage.sessions import RecordedSession, difference, settings_mark


def test_vendors_add_to_the_version() -> None:
    assert [minor_of(version) for version in ("3.5.2-amzn-1", "4.0.1", "4.1.0.dev0", "")] == ["3.5", "4.0", "4.1", ""]


@pytest.mark.parametrize("version", ["3.4.4", "4.2.1", "4.10.0", ""])
def test_a_version_that_was_not_tried_is_refused(version: str) -> None:
    with pytest.raises(EngineError, match=r"mvbuild supports Spark 3\.5, 4\.0 and 4\.1") as caught:
        release_of(version)
    assert caught.value.help


def test_the_installed_version_is_that_of_pyspark() -> None:
    import pyspark

    assert installed_version() == pyspark.__version__


def test_the_functions_of_every_release_are_known() -> None:
    assert NEWER_THAN.keys() == RELEASES.keys()
    assert NEWER_THAN["4.1"] == frozenset()
    assert NEWER_THAN["4.0"] < NEWER_THAN["3.5"] <= FUNCTIONS


@pytest.mark.parametrize(
    ("version", "sql", "refused"),
    [
        ("3.5", "SELECT listagg(name) FROM t", "listagg"),
        ("3.5", "SELECT k, ListAgg (name) FROM t GROUP BY k", "ListAgg"),
        ("3.5", "SELECT `listagg`(name) FROM t", "listagg"),
        ("4.0", "SELECT listagg(name) FROM t", None),
        ("4.0", "SELECT try_to_date(name) FROM t", "try_to_date"),
        ("4.1", "SELECT try_to_date(name) FROM t", None),
        ("3.5", "SELECT lake.udfs.listagg(name) FROM t", None),
        ("3.5", "WITH uniform(a) AS (SELECT 1) SELECT a FROM uniform", None),
        ("3.5", "SELECT listagg FROM t -- listagg(x)", None),
    ],
)
def test_a_function_of_the_user_is_not_taken_for_that_of_a_newer_spark(version: str, sql: str, refused: str | None) -> None:
    if refused is None:
        require_builtin(version, sql)
        return
    with pytest.raises(QueryError, match=f"{refused} is your own function on Spark {version}") as caught:
        require_builtin(version, sql)
    assert sql[caught.value.start : caught.value.end].strip("`") == refused


def test_a_session_that_spark_3_5_will_start_has_its_default_of_ansi() -> None:
    assert configured_session({}, "3.5").settings[ANSI] == "false"
    assert ANSI not in configured_session({ANSI: "true"}, "3.5").settings
    assert ANSI not in configured_session({}, "4.0").settings
    assert ANSI not in configured_session({}).settings


def test_rows_of_spark_3_5_are_not_those_of_spark_4_because_of_ansi() -> None:
    old, new = configured_session({}, "3.5"), configured_session({}, "4.1")
    made = RecordedSession(session=replace(old, is_whole=True), configured=old.settings)
    assert difference(made, old, depends_on_zone=lambda: "") == ""
    assert "spark.sql.ansi.enabled was different (false then, true now)" in difference(made, new, depends_on_zone=lambda: "")


def test_rows_are_added_only_to_those_of_the_same_version() -> None:
    marks = {version: settings_mark({ANSI: "true", SPARK_VERSION: version}) for version in RELEASES}
    assert len(set(marks.values())) == len(RELEASES)
    assert marks["4.1"] == settings_mark({ANSI: "true"}), "marks that were made before versions were in them"
