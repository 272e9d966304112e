"""One Spark for the whole test run, on an embedded SQLite catalog."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog

from mvbuild.adapters.spark import start_engine
from mvbuild.adapters.spark.engine import SparkEngine
from mvbuild.adapters.spark.releases import installed_release
from mvbuild.names import TableIdentifier
from mvbuild.ports.sources import SourceLocation
from mvbuild.project.loaded import SparkSettings, Target
from spark import quick
from spark.projects import Project, new_project

CONNECT = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}
OF_VERSION: Mapping[str, str] = CONNECT
if installed_release().spark == "3.5":
    # PySpark includes the server since Spark 4. The tests expect the errors of ANSI, which is on by default since then.
    OF_VERSION = {"spark.sql.ansi.enabled": "true"}


@dataclass(frozen=True, kw_only=True)
class Lake:
    """A catalog, and the one engine of the test run on it."""

    name: str
    properties: Mapping[str, str]
    file: Path
    warehouse: Path
    log_file: Path
    target: Target
    engine: SparkEngine
    catalog: SqlCatalog
    """PyIceberg's view of it."""

    @property
    def session(self) -> Any:
        return self.engine.session

    def sql(self, text: str) -> list[Any]:
        return self.engine.session.sql(text).collect()

    @property
    def remote(self) -> str:
        """The address of the same Spark for other processes, by Spark Connect. They start at once, and its code has been compiled."""
        service = getattr(self.session._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
        return f"sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}"

    def pointer(self, table: str) -> str:
        with closing(sqlite3.connect(self.file)) as db:
            return db.execute("SELECT metadata_location FROM iceberg_tables WHERE table_name = ?", [table]).fetchone()[0]


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    root = tmp_path_factory.mktemp("lake")
    file, warehouse = root / "catalog.db", root / "warehouse"
    properties = {"type": "sql", "uri": f"sqlite:///{file}", "warehouse": warehouse.as_uri()}
    # With 1 GB, the JVM of many tests collects garbage for more than a quarter of its time.
    java = {name: f"{options} -Xms1g -Xmn600m" for name, options in quick.JVM.items()}
    spark = SparkSettings(master="local[2]", config={"spark.driver.memory": "1800m", **java, **quick.QUERIES, **OF_VERSION})
    target = Target(name="test", catalog_name="lake", catalog=properties, namespace=("main",), spark=spark, threads=4, embedded=True)
    catalog = load_catalog("lake", **properties)
    assert isinstance(catalog, SqlCatalog)
    # One JVM for all tests: it needs the jars of those that read Delta tables.
    delta = SourceLocation(identifier=TableIdentifier("", (), "/delta"), type="deltalake-filesystem")
    engine = start_engine(target, log_file=root / "spark.log", env=os.environ, sources=[delta, *_of_servers()])
    assert isinstance(engine, SparkEngine)
    yield Lake(
        name="lake",
        properties=properties,
        file=file,
        warehouse=warehouse,
        log_file=root / "spark.log",
        target=target,
        engine=engine,
        catalog=catalog,
    )
    engine.close()
    catalog.close()


def _of_servers() -> list[SourceLocation]:
    """Sources that need the jars of the catalogs on servers."""
    properties = {"on_postgres": {"type": "sql", "uri": "postgresql://127.0.0.1:9/x"}, "on_glue": {"type": "glue", "warehouse": "s3://x"}}
    return [
        SourceLocation(identifier=TableIdentifier(name, ("x",), "x"), type="iceberg-metastore", options=of)
        for name, of in properties.items()
    ]


@pytest.fixture(scope="module")
def project(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Mapping[str, str]], Project]]:
    """Makes projects, each with an embedded catalog of its own, on the one Spark."""
    made: list[Project] = []

    def make(files: Mapping[str, str]) -> Project:
        made.append(new_project(tmp_path_factory.mktemp("project"), files, lake.session))
        return made[-1]

    yield make
    for one in made:
        one.catalog.close()
