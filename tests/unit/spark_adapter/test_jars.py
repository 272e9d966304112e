from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.adapters.spark import jars
from mvbuild.adapters.spark.releases import RELEASES
from mvbuild.ports.engine import EngineError

SQLITE = {"type": "sql", "uri": "sqlite:////c.db"}

TRAPPED = """
:: problems summary ::
:::: WARNINGS
\t\t[NOT FOUND  ] org.xerial#sqlite-jdbc;3.50.3.0!sqlite-jdbc.jar (1ms)

\t==== local-m2-cache: tried

\t  file:/home/me/.m2/repository/org/xerial/sqlite-jdbc/3.50.3.0/sqlite-jdbc-3.50.3.0.jar

\t\t::::::::::::::::::::::::::::::::::::::::::::::
\t\t::              FAILED DOWNLOADS            ::
"""

FAKE_JAVA = """#!/bin/sh
for argument in "$@"; do case "$argument" in spark.jars.ivy=*) ivy="${argument#spark.jars.ivy=}";; esac; done
mkdir -p "$ivy/jars"
echo jar > "$ivy/jars/org.xerial_sqlite-jdbc-3.50.3.0.jar"
echo "$@" >> "$(dirname "$0")/calls"
"""


def java(folder: Path, script: str) -> Path:
    path = folder / "java"
    path.write_text(script)
    path.chmod(0o755)
    return path


NEWEST = RELEASES["4.1"]


def test_what_a_catalog_needs() -> None:
    assert jars.needed(SQLITE, {}, NEWEST) == (NEWEST.runtime, jars.SQLITE)
    assert jars.needed({"type": "sql", "uri": "postgresql+psycopg2://h/d", "warehouse": "s3://b"}, {}, NEWEST) == (
        NEWEST.runtime,
        jars.POSTGRESQL,
        NEWEST.aws,
    )
    assert jars.needed({"type": "glue"}, {}, NEWEST) == (NEWEST.runtime, NEWEST.aws)
    assert jars.needed({"type": "rest", "uri": "http://c"}, {}, NEWEST) == (NEWEST.runtime,)


def test_each_version_of_spark_has_its_own_jars() -> None:
    names = {version: jars.needed({"type": "glue"}, {}, release) for version, release in RELEASES.items()}
    assert {version: [artifact.file_name for artifact in found] for version, found in names.items()} == {
        "3.5": ["iceberg-spark-runtime-3.5_2.12-1.12.0.jar", "iceberg-aws-bundle-1.12.0.jar"],
        "4.0": ["iceberg-spark-runtime-4.0_2.13-1.11.0.jar", "iceberg-aws-bundle-1.11.0.jar"],
        "4.1": ["iceberg-spark-runtime-4.1_2.13-1.12.0.jar", "iceberg-aws-bundle-1.12.0.jar"],
    }


def test_a_connect_server_is_a_jar_of_its_own_before_spark_4() -> None:
    (server,) = jars.needed_for_connect("local[2]", "3.5.9")
    assert server.coordinate == "org.apache.spark:spark-connect_2.12:3.5.9"
    assert jars.needed_for_connect("local[2]", "4.0.1") == ()
    assert jars.needed_for_connect("sc://server", "3.5.9") == jars.needed_for_connect(None, "3.5.9") == ()


def test_what_the_user_brings_is_not_added() -> None:
    assert jars.needed(SQLITE, {"spark.jars": "/opt/iceberg-spark-runtime-4.1_2.13-1.11.0.jar"}, NEWEST) == (jars.SQLITE,)
    packages = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0,org.xerial:sqlite-jdbc:3.49.0.0"
    assert jars.needed(SQLITE, {"spark.jars.packages": packages}, NEWEST) == ()


def test_where_the_cache_is() -> None:
    assert jars.cache_dir({"MVBUILD_CACHE_DIR": "/c", "XDG_CACHE_HOME": "/x"}) == Path("/c")
    assert jars.cache_dir({"XDG_CACHE_HOME": "/x"}) == Path("/x/mvbuild")
    assert jars.cache_dir({}) == Path.home() / ".cache" / "mvbuild"


def test_jars_are_resolved_once(tmp_path: Path) -> None:
    said: list[str] = []
    cache = tmp_path / "cache"
    for _ in range(2):
        found = jars.resolve(
            [jars.SQLITE],
            cache=cache,
            java=java(tmp_path, FAKE_JAVA),
            config={"spark.jars.repositories": "http://mirror", "spark.driver.extraJavaOptions": "-Xmx1g -Dhttp.proxyHost=p"},
            env={"PATH": "/bin:/usr/bin"},
            progress=said.append,
        )
    assert [path.read_text() for path in found] == ["jar\n"]
    assert said == ["resolving jars (first run only)"]
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 1
    assert "--packages org.xerial:sqlite-jdbc:3.50.3.0 " in calls[0]
    assert "spark.jars.repositories=http://mirror" in calls[0]
    assert calls[0].startswith("-Dhttp.proxyHost=p -cp ")
    assert [path.name for path in cache.iterdir()] == ["jars"]


def test_a_jar_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    script = "#!/bin/sh\necho 'java.net.UnknownHostException: repo1.maven.org' >&2\nexit 1\n"
    with pytest.raises(EngineError, match=r"org.xerial:sqlite-jdbc:3.50.3.0 could not be downloaded: .* cannot be reached") as caught:
        jars.resolve([jars.SQLITE], cache=tmp_path / "cache", java=java(tmp_path, script), config={}, env={"PATH": "/bin:/usr/bin"})
    assert caught.value.code == "jars-unavailable"


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError) as caught:
        jars.resolve([jars.SQLITE], cache=tmp_path / "file", java=Path("/java"), config={}, env={})
    assert "MVBUILD_CACHE_DIR" in caught.value.help


def test_the_ivy_trap_is_explained() -> None:
    message, advice = jars.explain(TRAPPED, [jars.SQLITE])
    assert "local Maven repository" in message
    assert "/home/me/.m2/repository/org/xerial/sqlite-jdbc/3.50.3.0 " in advice


def test_another_spark_home(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"is not Spark \d\.\d for Scala"):
        jars.spark_home({"SPARK_HOME": str(tmp_path)})
