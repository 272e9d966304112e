"""Which server a command may use, and how it goes on without one."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mvbuild.adapters.spark import start_engine
from mvbuild.adapters.spark.engine import SparkEngine
from mvbuild.adapters.spark.java import Java
from mvbuild.adapters.spark.launch import Launch
from mvbuild.adapters.spark.warm import lease as leasing
from mvbuild.adapters.spark.warm.client import open_session
from mvbuild.adapters.spark.warm.folder import Folder, Record, home
from mvbuild.adapters.spark.warm.identity import identity
from mvbuild.adapters.spark.warm.lease import Lease, Wanted, lease
from mvbuild.adapters.spark.warm.server import launched, order
from mvbuild.adapters.spark.warm.wanted import kept
from mvbuild.ports.engine import EngineError
from mvbuild.project.loaded import SparkSettings, Target

KEEP = timedelta(minutes=15)
WANTED = Wanted(keep=KEEP, project="/shop", target="dev")


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"1")
    conf = {"spark.master": "local[1]", "spark.sql.catalog.lake.token": "a-secret", "spark.jars": str(jar)}
    return Launch(
        java=Java(path=Path("/java"), major=17, full_version="17.0.1"), conf=conf, class_path=(jar,), java_options=("-Xshare:auto",)
    )


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, KEEP),
        ({"CI": "true"}, None),
        ({"CI": "false"}, KEEP),
        ({"CI": ""}, KEEP),
        ({"CI": "true", "MVBUILD_KEEP_WARM": "1h30m"}, timedelta(minutes=90)),
        ({"MVBUILD_KEEP_WARM": "off"}, None),
        ({"MVBUILD_KEEP_WARM": "0"}, None),
        ({"MVBUILD_KEEP_WARM": " "}, KEEP),
    ],
)
def test_how_long_it_is_kept(env: Mapping[str, str], expected: timedelta | None) -> None:
    assert kept(SparkSettings(keep_warm=KEEP), env) == expected


def test_it_is_kept_only_if_it_is_asked_for_and_local() -> None:
    asked = {"MVBUILD_KEEP_WARM": "5m"}
    assert kept(SparkSettings(), {}) is None
    assert kept(SparkSettings(), asked) == timedelta(minutes=5)
    assert kept(SparkSettings(master="spark://host:7077"), asked) is None
    assert kept(SparkSettings(config={"spark.master": "yarn"}), asked) is None
    assert kept(SparkSettings(remote="sc://host"), asked) is None
    with pytest.raises(EngineError, match="MVBUILD_KEEP_WARM must be a duration like 15m, or off, and not 'soon'") as caught:
        kept(SparkSettings(), {"MVBUILD_KEEP_WARM": "soon"})
    assert caught.value.code == "command-line"


ENV = {"HOME": "/home/me", "TZ": "UTC", "AWS_PROFILE": "a", "PATH": "/bin", "WINDOWID": "7", "MVBUILD_X": "y"}


def test_what_a_server_sees_of_the_environment(launch: Launch) -> None:
    found = identity(launch, ENV, KEEP)
    assert found.environment == {"HOME": "/home/me", "TZ": "UTC", "AWS_PROFILE": "a", "PATH": "/bin"}
    assert "a-secret" not in repr(found)


def test_the_same_settings_are_the_same_server(launch: Launch) -> None:
    other_terminal = {**ENV, "WINDOWID": "8", "PATH": "/usr/bin", "MVBUILD_X": "z"}
    reordered = replace(launch, conf=dict(reversed(launch.conf.items())), java_options=("-XX:SharedArchiveFile=x",))
    assert identity(launch, ENV, KEEP).fingerprint == identity(reordered, other_terminal, KEEP).fingerprint


def test_whatever_matters_makes_another_server(launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity(launch, ENV, KEEP).fingerprint
    changed = [
        identity(replace(launch, conf={**launch.conf, "spark.sql.ansi.enabled": "false"}), ENV, KEEP),
        identity(replace(launch, conf={**launch.conf, "spark.sql.catalog.lake.token": "another"}), ENV, KEEP),
        identity(replace(launch, java=Java(path=Path("/java"), major=17, full_version="17.0.2")), ENV, KEEP),
        identity(replace(launch, class_path=()), ENV, KEEP),
        identity(launch, {**ENV, "AWS_PROFILE": "b"}, KEEP),
        identity(launch, {**ENV, "HTTPS_PROXY": "http://proxy"}, KEEP),
        identity(launch, ENV, timedelta(hours=1)),
    ]
    with monkeypatch.context() as patched:
        patched.setattr("mvbuild.adapters.spark.warm.identity.__version__", "0.0.0")
        changed.append(identity(launch, ENV, KEEP))
    with monkeypatch.context() as patched:
        patched.chdir(tmp_path)
        changed.append(identity(launch, ENV, KEEP))
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/core-site.xml").write_text("<a/>")
    changed.append(identity(launch, {**ENV, "HADOOP_CONF_DIR": str(tmp_path / "conf")}, KEEP))
    (tmp_path / "conf/core-site.xml").write_text("<another/>")
    changed.append(identity(launch, {**ENV, "HADOOP_CONF_DIR": str(tmp_path / "conf")}, KEEP))
    launch.class_path[0].write_bytes(b"22")
    changed.append(identity(launch, ENV, KEEP))
    found = [one.fingerprint for one in changed]
    assert before not in found
    assert len(set(found)) == len(found)


def test_a_launch_survives_the_way_to_the_server(launch: Launch) -> None:
    assert launched(order(launch)) == launch


@pytest.fixture
def said() -> list[str]:
    return []


def leased(launch: Launch, tmp_path: Path, said: list[str]) -> Lease | None:
    return lease(launch, WANTED, env={"MVBUILD_CACHE_DIR": str(tmp_path / "cache")}, say=said.append)


def test_without_the_packages_of_connect_the_command_is_told_what_to_install(
    launch: Launch, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leasing, "_CLIENT", ("grpc", "no_such_module", "no_such_package.module"))
    assert leased(launch, tmp_path, said) is None
    assert said == ["no warm engine (no_such_module, no_such_package.module missing: pip install 'pyspark[connect]')"]


def test_a_folder_that_others_can_read_is_not_used(launch: Launch, tmp_path: Path, said: list[str]) -> None:
    path = home({"MVBUILD_CACHE_DIR": str(tmp_path / "cache")})
    path.mkdir(parents=True, mode=0o755)
    path.chmod(0o755)
    assert leased(launch, tmp_path, said) is None
    assert said == [f"no warm engine ({path} must be your own directory, readable only by you (mode 700))"]


def test_a_server_that_does_not_start(launch: Launch, tmp_path: Path, said: list[str]) -> None:
    """There is no such Java, so Spark's launcher fails."""
    broken = replace(launch, conf={**launch.conf, "spark.driver.memory": "none"})
    assert leased(broken, tmp_path, said) is None
    (folder,) = (tmp_path / "cache").glob("engines-*/*")
    assert said == [
        "starting Spark, and keeping it warm",
        f"the warm engine did not start (log: {folder}/spark.log): starting Spark for this command",
    ]
    assert "Spark could not be started" in (folder / "spark.log").read_text()
    assert "a-secret" not in (folder / "spark.log").read_text()
    assert not Folder(folder).is_alive()


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that accepts connections and never answers, like a process that is stopped."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        yield listening.getsockname()[1]


def record(port: int) -> Record:
    return Record(pid=1, port=port, token="t", started_ms=0, keep_seconds=1.0, memory="1g", project="", target="", machine="")


def test_a_server_that_does_not_answer_is_not_waited_for(silent: int) -> None:
    assert open_session(record(silent), 0.3) is None


def test_a_server_that_is_not_there() -> None:
    assert open_session(record(9), 20.0) is None


def test_why_a_server_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leasing, "_LEASE_SECONDS", 0.2)
    folder = Folder(tmp_path / "f")
    folder.make()
    held: Any = folder.lease(0.0)
    lost = Lease(session=None, folder=folder, record=record(1), held=held)  # type: ignore[arg-type]
    assert lost.why_lost().startswith("the warm engine ended (log: ")
    folder.log.write_text("WARN something\nTerminating due to java.lang.OutOfMemoryError: Java heap space\n")
    assert lost.why_lost() == "the warm engine ran out of memory: set spark.driver.memory in the target to give it more than 1g"
    alive = folder.own(0.0)
    assert alive is not None
    assert lost.why_lost() == ""


@pytest.mark.parametrize(
    ("message", "status"),
    [("Socket closed", "UNAVAILABLE"), ("Stream removed (RST_STREAM (Received RST_STREAM with error code 8))", "INTERNAL")],
)
def test_a_server_that_is_lost_is_reported_in_one_sentence_with_the_reason(tmp_path: Path, message: str, status: str) -> None:
    from grpc import StatusCode
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    folder = Folder(tmp_path / "f")
    folder.make()
    held: Any = folder.lease(0.0)
    session: Any = _Lost(SparkConnectGrpcException(message=message, grpc_status_code=StatusCode[status]))
    engine = SparkEngine(session, own=True, lease=Lease(session=session, folder=folder, record=record(1), held=held))
    with pytest.raises(EngineError, match=r"^Spark stopped while it was in use: the warm engine ended \(log: "):
        engine.rows("SELECT 1", 1)
    assert folder.unused() is None
    engine.close()
    assert folder.unused() is not None


def test_no_session_of_mvbuild_prints_the_stack_of_a_failed_query(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pyspark.logger import PySparkLogger

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    monkeypatch.setattr(logger, "disabled", False)
    monkeypatch.setattr("mvbuild.adapters.spark._lease", lambda *_, **__: SimpleNamespace(session=SimpleNamespace(), why_lost=str))
    for introduced in ("introduce", "introduce_catalog"):
        monkeypatch.setattr(f"mvbuild.adapters.spark.sources.{introduced}", lambda *_: None)
    target = Target(name="dev", catalog_name="lake", catalog={}, namespace=("main",), spark=SparkSettings(), threads=1, embedded=True)
    start_engine(target, log_file=tmp_path / "spark.log", env={"MVBUILD_KEEP_WARM": "10m"}, project=tmp_path)
    assert logger.disabled


class _Lost:
    """A session whose server is gone."""

    def __init__(self, exc: Exception) -> None:
        self.exc = exc

    def sql(self, text: str) -> None:
        raise self.exc

    def stop(self) -> None:
        raise self.exc
