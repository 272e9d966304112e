"""Commands in processes of their own that share a warm engine, and everything that can happen to it between and during them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from mvbuild.adapters.spark.jars import cache_dir
from mvbuild.adapters.spark.warm.client import open_session
from mvbuild.adapters.spark.warm.folder import Folder, Record
from spark import quick
from spark.projects import ENVIRONMENT, Project, command_line, new_project, orders

pytestmark = pytest.mark.proof

_OUTSIDE = ("CI", "MVBUILD_KEEP_WARM")


@dataclass
class Machine:
    """A user's cache, with the jars of the real one: engines of these tests are not seen by other commands."""

    root: Path
    pids: set[int] = field(default_factory=set)

    @property
    def env(self) -> dict[str, str]:
        kept = {key: value for key, value in ENVIRONMENT.items() if key not in _OUTSIDE}
        return {**kept, "MVBUILD_CACHE_DIR": str(self.root / "cache")}

    def folders(self) -> list[Folder]:
        return [Folder(path) for path in sorted((self.root / "cache").glob("engines-*/*"))]

    def engines(self) -> list[int]:
        """The process ids of the servers that live."""
        found = [pid for folder in self.folders() if (pid := folder.owner()) is not None]
        self.pids.update(found)
        return found

    def one(self) -> tuple[Folder, Record]:
        """The only engine."""
        self.engines()
        (folder,) = [folder for folder in self.folders() if folder.is_alive()]
        record = folder.record()
        assert record is not None
        return folder, record

    def processes(self) -> list[int]:
        """What is left in the process groups of servers: they and their JVMs."""
        return [int(pid) for group in self.pids for pid in _pids_of_group(group)]

    def until_gone(self, seconds: float = 60.0) -> None:
        _until(lambda: not self.engines() and not self.processes(), seconds)

    def mvbuild(self, root: Path, command: str, *arguments: str, **env: str) -> Done:
        done = subprocess.run(
            command_line(root, command, *arguments), capture_output=True, text=True, check=False, timeout=300, env={**self.env, **env}
        )
        self.engines()
        return Done(done.returncode, done.stdout, done.stderr)

    def engine(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "mvbuild.cli.main", "engine", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=self.env)
        assert done.returncode == 0, done.stderr
        return done.stdout


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return f"{self.code}\n{self.out}\n{self.err}"


def _pids_of_group(group: int) -> list[str]:
    """Without zombies: a subshell of the script that starts the JVM may end after the script became the JVM, which never reaps it."""
    done = subprocess.run(["ps", "-e", "-o", "pgid=,pid=,stat="], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    return [pid for pgid, pid, state in rows if int(pgid) == group and not state.startswith("Z")]


def _until(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/jars").symlink_to(cache_dir(os.environ) / "jars")
    yield made
    made.engines()
    for pid in made.processes():
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def config(keep: str = "15m", memory: str = "1g", **more: str) -> str:
    settings = {"spark.driver.memory": memory, **quick.JVM, **quick.QUERIES, **more}
    target = {"spark": {"master": "local[2]", "keep_warm": keep, "config": settings}}
    return json.dumps({"name": "shop", "targets": {"dev": target}})


@contextmanager
def new_shop(root: Path) -> Iterator[Project]:
    """A view and an MV over a table of three rows."""
    files = {
        "mvbuild.yml": config(),
        "models/dear.sql": "{{ config(materialized='view') }}\nSELECT order_id FROM raw.orders WHERE amount > 5\n",
    }
    project = new_project(root, files, None)
    project.make("raw.orders", orders((1, 1, "2026-01-05", "10.00"), (2, 2, "2026-01-05", "5.50"), (3, 1, "2026-02-01", "1.25")))
    edit(project, 0)
    yield project
    project.catalog.close()


@pytest.fixture
def shop(machine: Machine) -> Iterator[Project]:
    with new_shop(machine.root / "shop") as made:
        yield made


def edit(project: Project, number: int) -> None:
    """Another definition of the MV, whose rows can be recognized."""
    project.write({"models/numbered.sql": f"SELECT order_id, {number} AS n FROM raw.orders\n"})


def numbers(project: Project) -> list[int]:
    """What a reader sees."""
    return sorted(row["n"] for row in project.arrow("main.numbered__storage").to_pylist())


def refreshed(machine: Machine, project: Project, number: int, **env: str) -> Done:
    """An edit and the run that refreshes the MV."""
    edit(project, number)
    done = machine.mvbuild(project.root, "run", "--select", "numbered", **env)
    assert done.code == 0, done.all
    assert numbers(project) == [number] * 3
    return done


def jvm(record: Record) -> int:
    """The Java process of a server."""
    done = subprocess.run(["pgrep", "-g", str(record.pid), "java"], capture_output=True, text=True, check=True)
    return int(done.stdout)


ENDLESS = "SELECT sum(sqrt(a.id * b.id)) AS n FROM range(10000000) a CROSS JOIN range(10000000) b\n"


@contextmanager
def endless(machine: Machine, project: Project) -> Iterator[subprocess.Popen[str]]:
    """A run whose query does not end by itself, after it began."""
    project.write({"models/slow.sql": ENDLESS})
    running = subprocess.Popen(
        command_line(project.root, "run", "--select", "slow"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=machine.env
    )
    assert running.stdout is not None
    try:
        for line in running.stdout:
            if "START" in line and "slow" in line:
                break
        else:
            raise AssertionError("it did not begin")
        yield running
    finally:
        running.kill()
        running.wait()
        running.stdout.close()
        (project.root / "models/slow.sql").unlink()


def test_commands_share_an_engine_until_it_is_stopped(machine: Machine, shop: Project) -> None:
    assert machine.engine("status") == "no warm engine\n"
    assert "starting Spark, and keeping it warm" in refreshed(machine, shop, 1).err
    folder, record = machine.one()
    for number in (2, 3):
        assert "starting Spark" not in refreshed(machine, shop, number).err
    assert machine.mvbuild(shop.root, "run").code == 0
    shown = machine.mvbuild(shop.root, "show", "dear", "--output", "json")
    assert [row["order_id"] for row in json.loads(shown.out)] == [1, 2], shown.all
    for command in ("test", "verify"):
        done = machine.mvbuild(shop.root, command)
        assert done.code == 0, done.all
    assert machine.one() == (folder, record)
    _nobody_else_can_use_it(machine, folder, record)
    _sessions_are_isolated(record)
    (described,) = json.loads(machine.engine("status", "--output", "json"))
    assert (described["project"], described["target"], described["state"], described["memory"]) == (str(shop.root), "dev", "idle", "1g")
    assert "stopped the engine" in machine.engine("stop")
    machine.until_gone()
    assert machine.folders() == []
    assert machine.engine("status") == "no warm engine\n"
    shop.assert_tidy()


def _nobody_else_can_use_it(machine: Machine, folder: Folder, record: Record) -> None:
    for path in (folder.path.parent, folder.path, *folder.path.iterdir()):
        assert path.stat().st_mode & 0o077 == 0, path
    assert len(machine.processes()) == 2
    for pid in machine.processes():
        assert record.token.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert open_session(replace(record, token="another"), 30.0) is None
    addresses = [
        line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines() + Path("/proc/net/tcp6").read_text().splitlines()
    ]
    listening = {address for address in addresses if address.endswith(f":{record.port:04X}")}
    assert listening <= {f"0100007F:{record.port:04X}", f"0000000000000000FFFF00000100007F:{record.port:04X}"}


def _sessions_are_isolated(record: Record) -> None:
    one, other = open_session(record, 30.0), open_session(record, 30.0)
    assert one is not None
    assert other is not None
    one.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    one.sql("SELECT 1 AS a").createOrReplaceTempView("mine")
    assert other.conf.get("spark.sql.session.timeZone") == "UTC"
    assert not other.catalog.tableExists("mine")
    assert one.sql("SELECT * FROM mine").collect()[0].a == 1
    one.stop()
    assert other.sql("SELECT 2 AS b").collect()[0].b == 2
    other.stop()


def test_it_is_killed_during_a_run(machine: Machine, shop: Project) -> None:
    refreshed(machine, shop, 1)
    _, record = machine.one()
    with endless(machine, shop) as running:
        os.kill(jvm(record), signal.SIGKILL)
        out, _ = running.communicate(timeout=120)
    assert running.returncode == 1, out
    assert "Spark stopped while it was in use: the warm engine ended" in out
    assert "Traceback" not in out
    machine.until_gone()
    assert numbers(shop) == [1] * 3
    refreshed(machine, shop, 2)
    shop.assert_tidy()
