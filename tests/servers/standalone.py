"""PySpark's own jars -> a standalone Spark cluster on free ports: a master and two workers, each a process that starts executors of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from servers.postgres import free_port

_DEPLOY = "org.apache.spark.deploy"
_START_SECONDS = 120
WORKERS = 2


class NoCluster(Exception):
    """Why there is no Spark cluster on this machine."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    master: str
    """spark://host:port"""
    log: Path
    """The master's log, which shows what was started where."""


@contextmanager
def running(root: Path) -> Iterator[Cluster]:
    """NoCluster if this machine cannot run it."""
    java, spark = shutil.which("java"), find_spec("pyspark")
    if java is None or spark is None or spark.origin is None:
        raise NoCluster("there is no Java" if java is None else "there is no PySpark")
    home = Path(spark.origin).parent
    port = free_port()
    cluster = Cluster(master=f"spark://127.0.0.1:{port}", log=root / "master.log")
    host = ("--host", "127.0.0.1", "--webui-port", "0")
    roles = [("master", "master.Master", (*host, "--port", str(port)))]
    for number in range(WORKERS):
        place = ("--work-dir", str(root / f"work-{number}"), cluster.master)
        roles.append((f"worker-{number}", "worker.Worker", (*host, "--cores", "1", "--memory", "1g", *place)))
    with ExitStack() as stack:
        for name, role, arguments in roles:
            command = [
                java,
                "-Xmx256m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                f"{home}/jars/*",
                f"{_DEPLOY}.{role}",
                *arguments,
            ]
            stack.enter_context(_process(command, root / f"{name}.log", home))
        _wait(cluster)
        yield cluster


@contextmanager
def _process(command: list[str], log: Path, home: Path) -> Iterator[None]:
    """Stopped as an operator does: a worker takes its executors along."""
    # Spark's own start script determines the version of Scala.
    env = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SCALA_VERSION": "2.13"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=env)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(cluster: Cluster) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        if cluster.log.read_text(errors="replace").count("Registering worker") == WORKERS:
            return
        time.sleep(0.1)
    raise RuntimeError(f"The cluster did not start: {cluster.log.read_text()[-2000:]}")
