"""files + the one Spark of the test run -> a project with an embedded catalog of its own, and the hands of other writers on it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from mvbuild import api
from mvbuild.adapters.spark.catalog_conf import catalog_conf
from mvbuild.api.sessions import OnEvent, ignore_event
from mvbuild.refresh.result import Event, NodeResult, RunResult

ORDERS = pa.schema([("order_id", pa.int64()), ("customer_id", pa.int64()), ("order_date", pa.date32()), ("amount", pa.decimal128(10, 2))])
CUSTOMERS = pa.schema([("customer_id", pa.int64()), ("country", pa.string()), ("active", pa.bool_())])


class NoSpark:
    """In place of a session, where nothing may use Spark."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"Spark was used: {name}")


@dataclass
class Project:
    """A project directory with the catalog `lake` in `.mvbuild`, which Spark and PyIceberg know as well."""

    root: Path
    spark: Any
    """A session of its own in the one Spark: it has its own catalogs."""
    catalog: SqlCatalog
    events: list[Any] = field(default_factory=list)

    def write(self, files: Mapping[str, str]) -> Project:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return self

    def over(self, remote: str) -> Project:
        """Its commands use a Spark that runs already, by Spark Connect: only mvbuild is a process of its own. With `--target own` Spark too."""
        spark = {"remote": remote, "config": catalog_conf("lake", properties(self.root))}
        with (self.root / "mvbuild.yml").open("a", encoding="utf-8") as file:
            file.write(f"\ntarget: remote\ntargets: {json.dumps({'remote': {'spark': spark}, 'own': {}})}\n")
        return self

    def run(self, *select: str, spark: Any = None, on_event: OnEvent = ignore_event, **options: Any) -> RunResult:
        graph = api.compile(self.root)

        def checked(event: Event) -> None:
            """The progress of a command shows the names of nodes."""
            node = getattr(event, "node", None)
            assert node is None or node in graph.nodes, f"{node} is not a node of the project"
            on_event(event)

        return api.run(graph, select=select, spark=spark or self.spark, on_event=checked, **options)

    def statuses(self, *select: str, **options: Any) -> dict[str, str]:
        """Node name -> status of a run."""
        return named(self.run(*select, **options))

    def only_reused(self) -> bool:
        """Whether a run has nothing to do, and does without Spark."""
        return set(self.statuses(spark=NoSpark()).values()) <= {"reused"}

    def refreshed(self, **options: Any) -> set[str]:
        """The nodes that a run changes; it must succeed."""
        result = self.run(**options)
        assert result.ok, messages(result)
        return {name for name, status in named(result).items() if status == "success"}

    def codes(self, model: str) -> list[str]:
        """The reasons of an MV's freshness."""
        graph = api.compile(self.root)
        _, answers = api.status(graph)
        return [r.code for r in answers[next(id for id in answers if id.endswith(f".{model}"))].reasons]

    def sql(self, text: str) -> list[Any]:
        return self.spark.sql(text).collect()

    def bag(self, text: str) -> Counter[str]:
        """The rows of a query, without order."""
        return bag(tuple(row) for row in self.sql(text))

    def table(self, name: str) -> Table:
        return self.catalog.load_table(name)

    def arrow(self, name: str) -> pa.Table:
        return self.table(name).scan().to_arrow()

    def make(self, name: str, rows: pa.Table) -> Table:
        """A base table of a foreign PyIceberg writer."""
        self.catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
        table = self.catalog.create_table(name, rows.schema)
        if rows.num_rows:
            table.append(rows)
        return table

    def append(self, name: str, *rows: Mapping[str, Any]) -> None:
        table = self.table(name)
        table.append(pa.Table.from_pylist(list(rows), schema=table.schema().as_arrow()))

    def view(self, name: str) -> dict[str, Any]:
        """The metadata file of a view."""
        file = self.catalog_file(name)
        content = file.read_bytes()
        return json.loads(gzip.decompress(content) if ".gz." in file.name else content)

    def catalog_file(self, name: str) -> Path:
        """The metadata file that the catalog shows for a table or view."""
        import sqlite3
        from contextlib import closing

        namespace, _, table = name.rpartition(".")
        with closing(sqlite3.connect(self.root / ".mvbuild" / "catalog.db")) as db:
            (location,) = db.execute(
                "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?", [namespace, table]
            ).fetchone()
        return Path(location.removeprefix("file://").removeprefix("file:"))

    def view_version(self, name: str) -> int:
        return self.view(name)["current-version-id"]

    def assert_tidy(self) -> None:
        """No audit branch and no scratch table is left."""
        for namespace in self.catalog.list_namespaces():
            for identifier in self.catalog.list_tables(namespace):
                assert identifier[0] != "mvbuild_scratch", identifier
                assert [b for b in self.catalog.load_table(identifier).metadata.refs if b.startswith("mvbuild_")] == [], identifier

    def command(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """`mvbuild` in a process of its own."""
        return subprocess.run(command_line(self.root, *arguments), capture_output=True, text=True, check=False, timeout=300, **options)


def command_line(root: Path, command: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "mvbuild.cli.main", command, "--project-dir", str(root), *arguments]


def properties(root: Path) -> dict[str, str]:
    home = root / ".mvbuild"
    return {"type": "sql", "uri": f"sqlite:///{home}/catalog.db", "warehouse": f"file://{home}/warehouse"}


def session_on(spark: Any, root: Path) -> Any:
    """A session of the same Spark whose catalog `lake` is the project's."""
    session = spark.newSession()
    for key, value in catalog_conf("lake", properties(root)).items():
        session.conf.set(key, value)
    return session


def new_project(root: Path, files: Mapping[str, str], spark: Any) -> Project:
    (root / ".mvbuild" / "warehouse").mkdir(parents=True)
    catalog = load_catalog("lake", **properties(root))
    assert isinstance(catalog, SqlCatalog)
    project = Project(root=root, spark=session_on(spark, root) if spark else None, catalog=catalog)
    return project.write(files)


def orders(*rows: tuple[int, int, str, str]) -> pa.Table:
    """Rows of raw.orders: id, customer, ISO date, amount."""
    return pa.Table.from_pylist([order(*row) for row in rows], schema=ORDERS)


def order(order_id: int, customer_id: int, day: str, amount: str) -> dict[str, Any]:
    return {"order_id": order_id, "customer_id": customer_id, "order_date": date.fromisoformat(day), "amount": Decimal(amount)}


def customers(*rows: tuple[int, str, bool]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(CUSTOMERS.names, row, strict=True)) for row in rows], schema=CUSTOMERS)


def named(result: RunResult) -> dict[str, str]:
    return {r.node.rpartition(".")[2]: r.status for r in result.results}


def of(result: RunResult, model: str) -> NodeResult:
    return next(r for r in result.results if r.node.endswith(f".{model}"))


def messages(result: RunResult) -> list[str]:
    return [f"{r.node}: {r.status}: {d.code}: {d.message}" for r in result.results for d in r.diagnostics]


def bag(rows: Iterable[Any]) -> Counter[str]:
    return Counter(repr(tuple(row)) for row in rows)


def arrow_bag(table: pa.Table) -> Counter[str]:
    return bag(row.values() for row in table.to_pylist())


ENVIRONMENT = {**os.environ, "PYTHONUNBUFFERED": "1"}
