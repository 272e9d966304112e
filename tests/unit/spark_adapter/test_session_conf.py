from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mvbuild.adapters.spark import cds
from mvbuild.adapters.spark.java import Java
from mvbuild.adapters.spark.launch import quick_jvm, session_conf
from mvbuild.adapters.spark.session import last_words
from mvbuild.project.loaded import SparkSettings, Target


def target(**spark: Any) -> Target:
    catalog = {"type": "sql", "uri": "sqlite:////c.db"}
    settings = SparkSettings(**spark)
    return Target(name="t", catalog_name="lake", catalog=catalog, namespace=("n",), spark=settings, threads=1, embedded=False)


def conf(**spark: Any) -> dict[str, str]:
    return session_conf(target(**spark))


def test_a_local_session_is_small() -> None:
    found = conf(master="local[3]")
    assert (found["spark.sql.shuffle.partitions"], found["spark.driver.memory"], found["spark.ui.enabled"]) == ("6", "2g", "false")
    # The plans of a thousand statements would fill the heap.
    assert int(found["spark.sql.ui.retainedExecutions"]) < 100
    assert conf(master="local")["spark.sql.shuffle.partitions"] == "2"


def test_a_cluster_keeps_its_defaults() -> None:
    assert not conf(master="spark://h:7077").keys() & {"spark.sql.shuffle.partitions", "spark.driver.memory", "spark.driver.host"}


def test_the_user_wins() -> None:
    config = {"spark.sql.session.timeZone": "Europe/Berlin", "spark.sql.catalog.lake.uri": "jdbc:x", "spark.sql.extensions": "my.Extension"}
    found = conf(config=config)
    assert found["spark.sql.session.timeZone"] == "Europe/Berlin"
    assert found["spark.sql.catalog.lake.uri"] == "jdbc:x"
    assert found["spark.sql.extensions"].endswith("IcebergSparkSessionExtensions,my.Extension")


def test_the_reason_is_found_in_the_log() -> None:
    log = [
        "26/11/21 11:13:19 WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address",
        'Exception in thread "main" org.apache.spark.SparkException: Job aborted',
        "\tat org.apache.spark.Main.main(Main.java:1)",
        "Caused by: java.net.BindException: Address already in use",
        "\t... 12 more",
    ]
    assert last_words(log) == "Address already in use"
    assert last_words(["Unrecognized VM option 'x'", "Error: Could not create the Java Virtual Machine."]) == "Unrecognized VM option 'x'"
    assert last_words([]) == ""


def test_one_run_writes_the_class_archive_and_later_ones_use_it(tmp_path: Path) -> None:
    java = Java(path=Path("/java"), major=17, full_version="17.0.1")

    def options(train: bool = True) -> str:
        return " ".join(cds.options(java, [], Path("/spark"), tmp_path, train=train))

    assert options(train=False) == ""
    written = Path(options().rpartition("ArchiveClassesAtExit=")[2])
    assert options() == ""  # another process is writing it
    written.write_bytes(b"\0\0\0\0 not finished")
    assert options() == ""
    written.write_bytes(b"\xa8\xab\x0b\xf0 finished")
    archive = Path(options().rpartition("SharedArchiveFile=")[2])
    assert archive.read_bytes().endswith(b" finished")
    assert not written.exists()


def test_class_archives_that_were_not_used_for_a_month_are_removed(tmp_path: Path) -> None:
    java, other = (Java(path=Path("/java"), major=17, full_version=version) for version in ("17.0.1", "17.0.2"))
    (written,) = (Path(one.rpartition("=")[2]) for one in cds.options(java, [], Path("/spark"), tmp_path, train=True)[-1:])
    written.write_bytes(b"\xa8\xab\x0b\xf0 finished")
    archive = Path(cds.options(java, [], Path("/spark"), tmp_path, train=False)[-1].rpartition("=")[2])
    unused, month = tmp_path / "cds" / "unused.jsa", 31 * 24 * 3600
    unused.write_bytes(b"\xa8\xab\x0b\xf0")
    for one in (unused, archive):
        os.utime(one, (time.time() - month,) * 2)
    assert cds.options(java, [], Path("/spark"), tmp_path, train=False)  # marks it as used
    assert cds.options(other, [], Path("/spark"), tmp_path, train=True)
    assert archive.is_file()
    assert not unused.exists()


def test_nothing_of_pyspark_is_imported_before_it_is_needed() -> None:
    code = "import sys, mvbuild.adapters.spark.session, mvbuild.adapters.spark.engine; sys.exit('pyspark' in sys.modules)"
    compiler = Path(__file__).parents[3] / "compiler"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(compiler)}, check=False).returncode == 0


CODEGEN = "spark.sql.codegen.wholeStage"
MB = 1024 * 1024


def reading(reads: int | None, **spark: Any) -> dict[str, str]:
    return session_conf(target(**spark), reads=reads)


def test_a_process_that_reads_next_to_nothing_does_not_generate_code() -> None:
    found = reading(MB // 2, master="local[2]")
    assert (found[CODEGEN], found["spark.sql.shuffle.partitions"]) == ("false", "1")
    for reads in (None, 2 * MB):
        assert CODEGEN not in reading(reads, master="local[2]")
    assert CODEGEN not in reading(1, master="spark://h:7077")
    assert reading(1, master="local[2]", config={CODEGEN: "true"})[CODEGEN] == "true"


def test_a_process_that_reads_little_does_not_optimize_code() -> None:
    assert "-XX:TieredStopAtLevel=1" in quick_jvm({}, {}, Path("/spark"), 10 * MB)
    # A JVM does not start with a heap that is larger than its limit.
    assert "-Xms1g" in quick_jvm({}, {}, Path("/spark"), 10 * MB)
    assert "-Xms1g" not in quick_jvm({"spark.driver.memory": "512m"}, {}, Path("/spark"), 10 * MB)
    assert quick_jvm({}, {}, Path("/spark"), 100 * MB) == quick_jvm({}, {}, Path("/spark"), None) == ()


@pytest.mark.parametrize("key", ["spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"])
def test_options_of_the_project_are_not_mixed_with_those(key: str) -> None:
    assert quick_jvm({key: "-XX:+UseZGC"}, {}, Path("/spark"), 1) == ()


def test_options_of_the_machine_are_not_mixed_with_those(tmp_path: Path) -> None:
    assert quick_jvm({}, {"JAVA_TOOL_OPTIONS": "-XX:+UseParallelGC"}, tmp_path, 1) == ()
    assert quick_jvm({}, {"SPARK_CONF_DIR": str(tmp_path)}, Path("/spark"), 1)
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.defaultJavaOptions -XX:+UseG1GC\n")
    assert quick_jvm({}, {"SPARK_CONF_DIR": str(tmp_path)}, Path("/spark"), 1) == ()
