"""Two commands on one project at the same time, and commands that are killed: every kept snapshot can be read, and the next run is right."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from mvbuild import api
from mvbuild.adapters.spark.catalog_conf import catalog_conf
from mvbuild.ports.commits import ConvertCommit, Refresh
from mvbuild.refresh.run_id import RunId
from mvbuild.storage.stored import stored
from spark.conftest import Lake
from spark.crashes import Seen, read
from spark.projects import ENVIRONMENT, Project, bag, command_line, messages, new_project, order, orders
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

# A task per order writes a file of its own. `wide` is kept in two entries, `wide_file` in one; `sums` and `sums_file` read them.
WIDE = "SELECT /*+ REPARTITION(6, order_id) */ order_id, customer_id, amount FROM raw.orders\n"
FILES = {
    "mvbuild.yml": "name: shop\nmodels: {+maintain: {expire_after: 0s, orphans_after: 1h}, +namespace: mart}\n",
    "models/wide.sql": WIDE,
    "models/wide_file.sql": WIDE,
    "models/sums.sql": "SELECT customer_id, sum(amount) AS amount FROM {{ ref('wide') }} GROUP BY customer_id\n",
    "models/sums_file.sql": "SELECT customer_id, sum(amount) AS amount FROM {{ ref('wide_file') }} GROUP BY customer_id\n",
    "models/all.yml": (
        "models:\n"
        "  - {name: wide, config: {table_properties: {write.distribution-mode: none}}}\n"
        "  - {name: wide_file, config: {storage: {format: metadata-file}, table_properties: {write.distribution-mode: none}}}\n"
        "  - {name: sums_file, config: {storage: {format: metadata-file}}}\n"
    ),
}
SUMS = "SELECT customer_id, sum(amount) FROM lake.raw.orders GROUP BY customer_id"
EXPECTED = {
    "wide": "SELECT order_id, customer_id, amount FROM lake.raw.orders",
    "wide_file": "SELECT order_id, customer_id, amount FROM lake.raw.orders",
    "sums": SUMS,
    "sums_file": SUMS,
}

# Imports once, then forks a process for each line of its input: [effect to die after, or 0; arguments of mvbuild] -> [exit code, effects].
FORKS = """
import json, os, signal, sys
import pyiceberg.catalog.sql, pyiceberg.io.pyarrow, pyiceberg.table, mvbuild.api, mvbuild.lifecycle.maintain
from mvbuild.adapters.iceberg.files import FileStore
from mvbuild.adapters.iceberg.hadoop import FilePointers
from mvbuild.adapters.iceberg.pointers import SqlPointers
from mvbuild.cli.main import main

told = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
seen = [0]

def counted(owner, name, last):
    plain = getattr(owner, name)
    def effect(*given):
        result = plain(*given)
        seen[0] += 1
        if seen[0] == last:
            os.killpg(0, signal.SIGKILL)
        return result
    setattr(owner, name, effect)

for line in sys.stdin:
    last, arguments = json.loads(line)
    out, back = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        for owner, names in ((FileStore, ("write", "delete", "_delete_one")), (SqlPointers, ("swap", "delete")), (FilePointers, ("swap", "delete"))):
            for name in names:
                counted(owner, name, last)
        sys.argv = ["mvbuild", *arguments]
        code = 70
        try:
            main()
            code = 0
        except SystemExit as exit:
            code = exit.code or 0
        finally:
            sys.stdout.flush()
            os.write(back, str(seen[0]).encode())
            os._exit(code)
    os.close(back)
    _, status = os.waitpid(child, 0)
    print(json.dumps([os.waitstatus_to_exitcode(status), int(os.read(out, 20) or 0)]), file=told, flush=True)
    os.close(out)
"""


class Forks:
    """`mvbuild` in processes that start at once, each of which may die after its n-th effect on the catalog or on files."""

    def __init__(self, log: Path) -> None:
        self.log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=ENVIRONMENT
            )

    def run(self, root: Path, command: str, *arguments: str, die_after: int = 0) -> tuple[int, int]:
        """Exit code (-9 if it died), and how many effects it had."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([die_after, [command, "--project-dir", str(root), *arguments]]) + "\n")
        self._process.stdin.flush()
        code, effects = json.loads(self._process.stdout.readline())
        return code, effects

    def succeed(self, root: Path, command: str, *arguments: str) -> None:
        code, _ = self.run(root, command, *arguments)
        assert code == 0, self.log.read_text()

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    made = Forks(tmp_path_factory.mktemp("forks") / "log")
    yield made
    made.close()


@pytest.fixture(scope="module")
def built(project: MakeProject, lake: Lake) -> Project:
    """Refreshed three times, so that there is what can expire; all files are old, so that only what reaches them keeps them."""
    made = project(FILES).over(lake.remote)
    made.make("raw.orders", orders(*((i, i % 5, "2026-01-05", f"{i}.00") for i in range(1, 61))))
    for number in range(3):
        made.append("raw.orders", order(100 + number, 1, "2026-01-06", "1.00"))
        result = made.run()
        assert result.ok, messages(result)
    make_old(made.root)
    return made


def make_old(root: Path) -> None:
    long_ago = time.time() - 4 * 86400
    for file in (root / ".mvbuild").rglob("*"):
        if file.is_file():
            os.utime(file, (long_ago, long_ago))


@contextmanager
def state_of(project: Project) -> Iterator[Callable[[], None]]:
    """What restores the catalog and its files to what they are now; done at the end as well, and for the project's files only then."""
    home, copy = project.root / ".mvbuild", project.root / "copy"
    files = {p: p.read_text() for p in [project.root / "mvbuild.yml", *(project.root / "models").iterdir()]}
    shutil.copytree(home, copy)

    def restore() -> None:
        shutil.rmtree(home / "warehouse")
        shutil.copytree(copy / "warehouse", home / "warehouse")
        # Not the file: others have it open.
        with closing(sqlite3.connect(copy / "catalog.db")) as old, closing(sqlite3.connect(home / "catalog.db")) as now:
            old.backup(now)

    try:
        yield restore
    finally:
        restore()
        for path, text in files.items():
            path.write_text(text)
        shutil.rmtree(copy)


def pointers(project: Project) -> dict[str, str]:
    with closing(sqlite3.connect(project.root / ".mvbuild" / "catalog.db", timeout=60)) as db:
        return dict(db.execute("SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables").fetchall())


def scanned(project: Project) -> dict[str, Counter[str]]:
    """The rows of every MV that is there; each has a record. Of all its kept snapshots every data file is there."""
    rows, found = pointers(project), {}
    for name in EXPECTED:
        moment = Seen(view=rows.get(f"mart.{name}"), table=rows.get(f"mart.{name}__storage"))
        if moment == Seen(view=None, table=None):
            continue
        mv = read(moment)
        assert mv is not None
        assert mv.version is not None
        for snapshot in mv.storage.metadata.snapshots:
            files = [task.file.file_path for task in mv.storage.scan(snapshot_id=snapshot.snapshot_id).plan_files()]
            assert [f for f in files if not Path(f.removeprefix("file://").removeprefix("file:")).exists()] == []
        found[name] = bag(row.values() for row in mv.storage.scan().to_arrow().to_pylist())
    return found


def assert_right(project: Project) -> None:
    """Rows, records, freshness, and nothing left over."""
    found = scanned(project)
    for name, sql in EXPECTED.items():
        assert found[name] == bag(tuple(row) for row in project.sql(sql)), name
    _, answers = api.status(project.root)
    assert {f.state for f in answers.values()} == {"fresh"}
    assert project.only_reused()
    project.assert_tidy()
    assert audit_branches(project) == set()


def audit_branches(project: Project) -> set[str]:
    """Also of storages that have no entry of their own."""
    world, _ = api.status(project.root)
    storages = [world.observed.table(n.storage) for n in world.graph.views]
    return {branch for storage in storages if storage for branch in storage.branches if branch.startswith("mvbuild_")}


def start(of: Project, command: str, *arguments: str) -> subprocess.Popen[str]:
    command_ = command_line(of.root, command, *arguments)
    return subprocess.Popen(command_, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)


def ended(*processes: subprocess.Popen[str]) -> list[str]:
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    assert "Traceback" not in "".join(outputs), "\n\n".join(outputs)
    return outputs


def assert_lost_races_alone(maintain: subprocess.Popen[str], output: str) -> None:
    """`maintain` reports that a refresh or another `maintain` was faster, and nothing else."""
    told = [line for line in output.splitlines() if line.startswith("error")]
    assert maintain.returncode == bool(told), output
    assert all("commit-conflict" in line or "could not be compacted" in line for line in told), output


# --- two at once -----------------------------------------------------------------------------------------------------------------


def test_run_and_maintain_at_once_and_two_maintain_at_once(built: Project) -> None:
    with state_of(built):
        built.append("raw.orders", order(200, 1, "2026-01-07", "1.00"))
        run, maintain = start(built, "run"), start(built, "maintain")
        outputs = ended(run, maintain)
        assert run.returncode == 0, outputs[0]
        assert_lost_races_alone(maintain, outputs[1])
        assert_right(built)
        built.append("raw.orders", order(201, 1, "2026-01-07", "1.00"))
        assert built.run().ok
        make_old(built.root)
        both = start(built, "maintain"), start(built, "maintain")
        for process, output in zip(both, ended(*both), strict=True):
            assert_lost_races_alone(process, output)
        assert_right(built)
        _, done, _ = api.maintain(built.root, spark=built.spark)
        assert [d.message for one in done for d in one.diagnostics] == []
        assert_right(built)


def test_rollback_and_migrate_while_a_run_writes(built: Project, forks: Forks) -> None:
    with state_of(built):
        before = pointers(built)
        built.append("raw.orders", order(300, 1, "2026-01-07", "1.00"))
        run = start(built, "run")
        assert run.stdout is not None
        lines = [run.stdout.readline()]
        while (now := pointers(built)).keys() == before.keys() and run.poll() is None:
            assert now is not None
        # A scratch table is there: Spark runs, and the first MVs are written.
        told = [forks.run(built.root, "rollback", "wide", "--to", "1")[0]]
        told.append(forks.run(built.root, "migrate", "--to", "metadata-file", "--select", "sums")[0])
        (output,) = ended(run)
        assert run.returncode == 0, "".join(lines) + output
        assert told[1] == 0, forks.log.read_text()
        scanned(built)
        result = built.run()
        assert result.ok, messages(result)
        assert "mart.sums__storage" not in pointers(built)
        assert_right(built)


def test_an_mv_is_converted_while_it_is_refreshed_and_the_refresh_dies(built: Project) -> None:
    """The audit branch is in the metadata file then, and the next run removes it."""
    with state_of(built):
        world, _ = api.status(built.root)
        node = world.graph.model("model.shop.wide")
        storage = world.observed.table(node.storage)
        assert storage is not None
        catalog = api.catalog_of(world.graph)
        # As of a process of this host that does not run any more.
        catalog.create_branch(storage, RunId(host=socket.gethostname(), pid=2**22 + 1, started_ms=1, nonce="a").branch)
        world, _ = api.status(built.root)
        view, storage = world.observed.view(node.identifier), world.observed.table(node.storage)
        assert view is not None
        assert storage is not None
        assert node.storage is not None
        refresh = Refresh(refresh_id=3, record=stored(storage).record, keep=1)  # type: ignore[arg-type]
        catalog.commit([ConvertCommit(view=view, storage=storage, to="metadata-file", storage_name=node.storage, refresh=refresh)])
        assert built.only_reused()
        assert_right(built)
        assert audit_branches(built) == set()


# --- killed ----------------------------------------------------------------------------------------------------------------------


def moments(effects: int, most: int) -> list[int]:
    """Up to `most` of the effects, the first and the last among them."""
    return sorted({1 + (effects - 1) * n // (most - 1) for n in range(most)})


def test_maintain_is_killed_while_it_expires_and_deletes(built: Project, forks: Forks) -> None:
    with state_of(built) as restore:
        config = (built.root / "mvbuild.yml").read_text(encoding="utf-8")
        built.write({"mvbuild.yml": config.replace("{expire", "{compact: false, expire")})
        rows = scanned(built)
        code, effects = forks.run(built.root, "maintain", "--exclude", "sums")
        assert (code, effects > 10) == (0, True), forks.log.read_text()
        for at in moments(effects, 12):
            restore()
            assert forks.run(built.root, "maintain", "--exclude", "sums", die_after=at)[0] == -signal.SIGKILL
            assert scanned(built) == rows
            forks.succeed(built.root, "maintain", "--exclude", "sums")
            assert scanned(built) == rows
            assert built.only_reused()
            built.assert_tidy()


@pytest.mark.parametrize("to", ["metadata-file", "table-properties"])
def test_migrate_is_killed(built: Project, forks: Forks, to: str) -> None:
    """Each MV is in the one format or the other, whole."""
    with state_of(built) as restore:
        rows = scanned(built)
        code, effects = forks.run(built.root, "migrate", "--to", to)
        assert (code, effects > 3) == (0, True), forks.log.read_text()
        for at in moments(effects, 8):
            restore()
            assert forks.run(built.root, "migrate", "--to", to, die_after=at)[0] == -signal.SIGKILL
            assert scanned(built) == rows
            _, answers = api.status(built.root)
            assert {f.state for f in answers.values()} == {"fresh"}
            forks.succeed(built.root, "migrate", "--to", to)
            assert scanned(built) == rows
            assert {f"mart.{name}__storage" in pointers(built) for name in EXPECTED} == {to == "table-properties"}


def test_prune_is_killed(built: Project, forks: Forks) -> None:
    """A removed MV is there whole, or its entries are gone; the next `run --prune` has no more entries to drop."""
    with state_of(built) as restore:
        rows = scanned(built)
        for name in ("sums", "sums_file"):
            (built.root / f"models/{name}.sql").unlink()
        built.write({"models/all.yml": "\n".join(line for line in FILES["models/all.yml"].splitlines() if "name: sums" not in line)})
        code, effects = forks.run(built.root, "run", "--prune")
        assert (code, effects > 10) == (0, True), forks.log.read_text()
        kept = {name: rows[name] for name in ("wide", "wide_file")}
        assert scanned(built) == kept
        for at in moments(effects, 10):
            restore()
            assert forks.run(built.root, "run", "--prune", die_after=at)[0] == -signal.SIGKILL
            found = scanned(built)
            assert kept.items() <= found.items() <= rows.items()
            assert ("mart.sums" in pointers(built)) == ("mart.sums__storage" in pointers(built))
            forks.succeed(built.root, "run", "--prune")
            assert scanned(built) == kept


def test_maintain_is_killed_after_a_compaction(built: Project, forks: Forks) -> None:
    with state_of(built):
        rows = scanned(built)
        before = pointers(built)
        maintain = subprocess.Popen(
            command_line(built.root, "maintain", "--target", "own", "--select", "wide", "wide_file"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        # Spark's own commit of the compaction is the first change of a storage table; of the file, mvbuild's.
        while pointers(built)["mart.wide__storage"] == before["mart.wide__storage"] and maintain.poll() is None:
            time.sleep(0.01)
        os.killpg(maintain.pid, signal.SIGKILL)
        maintain.communicate()
        assert maintain.returncode == -signal.SIGKILL
        assert scanned(built) == rows
        _, answers = api.status(built.root)
        assert {f.state for f in answers.values()} == {"fresh"}
        _, done, _ = api.maintain(built.root, spark=built.spark)
        assert [d.message for one in done for d in one.diagnostics] == []
        assert_right(built)
        assert built.only_reused()


# --- a warehouse on a file system ------------------------------------------------------------------------------------------------


WAREHOUSE = {
    "mvbuild.yml": (
        "name: shop\nmodels: {+storage: {format: metadata-file}}\nseeds: {shop: {+column_types: {id: bigint, amount: bigint}}}\n"
        "targets: {dev: {catalog: {name: lake, type: hadoop, warehouse: '%s'}, namespace: main}}\n"
    ),
    "models/by_kind.sql": "SELECT id %% 3 AS kind, sum(amount) AS amount, count(*) AS c FROM {{ ref('sold') }} GROUP BY id %% 3\n".replace(
        "%%", "%"
    ),
    "models/total.sql": "SELECT sum(amount) AS amount, sum(c) AS c FROM {{ ref('by_kind') }}\n",
}


def seed(count: int) -> dict[str, str]:
    return {"seeds/sold.csv": "id,amount\n" + "".join(f"{i},{i * 2}\n" for i in range(1, count + 1))}


def test_two_runs_and_a_killed_one_on_a_file_system(lake: Any, tmp_path: Path) -> None:
    warehouse = f"file://{tmp_path}/lake"
    made = new_project(tmp_path / "project", {**WAREHOUSE, **seed(50)}, None)
    made.write({"mvbuild.yml": WAREHOUSE["mvbuild.yml"] % warehouse})
    session = lake.session.newSession()
    for key, value in catalog_conf("lake", {"type": "hadoop", "warehouse": warehouse}).items():
        session.conf.set(key, value)

    def right(count: int) -> None:
        _, answers = api.status(made.root)
        assert {f.state for f in answers.values()} == {"fresh"}
        rows = api.show(made.root, "by_kind", limit=9).rows.rows
        assert sorted(rows) == sorted((k, sum(2 * i for i in ids), len(ids)) for k, ids in kinds(count).items())
        assert api.show(made.root, "total").rows.rows == ((count * (count + 1), count),)
        scratch = tmp_path / "lake/mvbuild_scratch"
        assert not scratch.exists() or not list(scratch.glob("*/metadata/v*.json"))

    try:
        both = start(made, "run"), start(made, "run")
        outputs = ended(*both)
        assert [process.returncode for process in both] == [0, 0], "\n\n".join(outputs)
        right(50)
        made.write(seed(80))
        killed = subprocess.Popen(
            command_line(made.root, "run"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENVIRONMENT, start_new_session=True
        )
        files = tmp_path / "lake/main/by_kind/metadata"
        before = len(list(files.glob("v*.json")))
        while len(list(files.glob("v*.json"))) == before and killed.poll() is None:
            time.sleep(0.01)  # the run has the processor
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
        assert killed.returncode == -signal.SIGKILL
        rows = api.show(made.root, "by_kind", limit=9).rows.rows
        assert sorted(rows) == sorted((k, sum(2 * i for i in ids), len(ids)) for k, ids in kinds(80).items())
        result = api.run(made.root, spark=session)
        assert result.ok, messages(result)
        right(80)
    finally:
        made.catalog.close()


def kinds(count: int) -> dict[int, list[int]]:
    return {kind: [i for i in range(1, count + 1) if i % 3 == kind] for kind in range(3)}
