"""Base tables outside of the catalog in runs: in memory, with sources that a test moves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from mvbuild.adapters.memory import MemoryCatalog
from mvbuild.adapters.spark.jars import SQLITE
from mvbuild.adapters.spark.launch import session_conf
from mvbuild.adapters.spark.releases import RELEASES
from mvbuild.adapters.spark.sources import needed
from mvbuild.lifecycle.rollback import rollback
from mvbuild.names import TableIdentifier
from mvbuild.ports.sources import SourceError, SourceLocation
from mvbuild.ports.states import Snapshot, TableState
from mvbuild.project.loaded import SparkSettings, Target
from mvbuild.refresh.recording import described
from mvbuild.refresh.run_id import RunId
from mvbuild.refresh.session import RunSession
from mvbuild.storage.history import history
from unit.worlds import Shop, append, base_table

PROJECT = {
    "mvbuild.yml": "name: shop\n",
    "models/s.yml": (
        "sources: [{name: files, tables: [{name: prices, type: deltalake-filesystem, path: /raw/prices},"
        " {name: stock, type: iceberg-filesystem, path: /raw/stock}]}]\n"
    ),
    "models/dear.sql": "SELECT id FROM {{ source('files', 'prices') }} JOIN raw.orders USING (id)\n",
    "models/held.sql": "SELECT id FROM {{ source('files', 'stock') }}\n",
}


@dataclass
class Moved:
    """Sources whose tables are copies of tables in a catalog in memory, and of as many versions as a test says."""

    catalog: MemoryCatalog
    versions: int = 1
    fails: str = ""
    """A part of the path of a table that cannot be read."""
    message: str = ""
    loads: list[list[str]] = field(default_factory=list)

    def load(self, locations: Iterable[SourceLocation]) -> Mapping[TableIdentifier, TableState]:
        wanted = list(locations)
        self.loads.append([w.identifier.name for w in wanted])
        if self.fails and (broken := [w for w in wanted if self.fails in w.identifier.name]):
            raise SourceError(self.message, broken[0].identifier, code="missing-package", help="install it")
        return {w.identifier: self.state(w) for w in wanted}

    def state(self, location: SourceLocation) -> TableState:
        (table,) = self.catalog.load([TableIdentifier("lake", ("raw",), "orders")]).values()
        assert isinstance(table, TableState)
        if location.type == "iceberg-filesystem":
            return replace(table, identifier=location.identifier, type=location.type, uuid="stock")
        ids = range(self.versions)
        snapshots = {
            i: Snapshot(
                snapshot_id=i,
                parent_id=i - 1 if i else None,
                sequence_number=i,
                timestamp_ms=i,
                operation="append",
                schema_id=None,
                summary={},
            )
            for i in ids
        }
        return replace(
            table,
            identifier=location.identifier,
            type=location.type,
            uuid="prices",
            current_snapshot_id=self.versions - 1,
            snapshots=snapshots,
        )


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path).write(PROJECT)
    base_table(made.catalog, "raw.orders")
    made.sources = Moved(made.catalog)
    return made


def test_what_the_engine_gets(shop: Shop) -> None:
    assert shop.statuses() == {"dear": "success", "held": "success"}
    held, dear = sorted(shop.engine.executed)
    assert "FROM lake.mvbuild_scratch.mvbuild_" in held
    assert "FROM spark_catalog.delta.`/raw/prices` VERSION AS OF 0 AS prices JOIN lake.raw.orders VERSION AS OF " in dear
    assert shop.catalog.list_names(("mvbuild_scratch",)) == ()
    properties = shop.table("main.dear__storage").properties
    assert properties["iceberg.base.snapshot.prices"] == "0"


def test_only_readers_of_what_moved_are_refreshed(shop: Shop) -> None:
    shop.run()
    assert set(shop.statuses().values()) == {"reused"}
    assert isinstance(shop.sources, Moved)
    shop.sources.versions = 3
    assert shop.actions() == {"dear": "refresh", "held": "reuse"}
    assert shop.statuses() == {"dear": "success", "held": "reused"}
    assert shop.table("main.dear__storage").properties["iceberg.base.snapshot.prices"] == "2"


def test_after_a_lost_race_the_sources_are_looked_at_again(shop: Shop) -> None:
    """Else the loser would go back to the version that it saw before the winner."""
    sources = shop.sources
    assert isinstance(sources, Moved)
    shop.run()
    sources.versions = 2
    planned = shop.plan("dear")
    other = Shop(shop.root, catalog=shop.catalog, sources=sources)

    def win(table: TableIdentifier) -> None:
        if sources.versions == 2:
            sources.versions = 3
            other.run("dear")

    shop.engine.before_write = win
    assert shop.statuses(planned=planned) == {"dear": "reused"}
    assert shop.table("main.dear__storage").properties["iceberg.base.snapshot.prices"] == "2"


def types(shop: Shop, model: str) -> dict[int, dict[str, str]]:
    """Refresh -> table -> type, as the metadata file lists them."""
    world = shop.world()
    storage = world.observed.table(world.graph.model(f"model.shop.{model}").storage)
    assert storage is not None
    assert storage.mv is not None
    return {r["refresh-id"]: {t["identifier"]: t["type"] for t in r["base-tables"].values()} for r in storage.mv.refreshes}


def went(shop: Shop, model: str, refresh_id: int) -> None:
    run, world = RunId(host="here", pid=1, started_ms=shop.clock.at_ms, nonce="abc"), shop.world()
    session = RunSession(
        catalog=shop.catalog, clock=shop.clock, run=run, world=world, start_engine=lambda: shop.engine, is_alive=lambda pid: True
    )
    rollback(session, world.graph.model(f"model.shop.{model}"), refresh_id)


def described_types(shop: Shop, model: str) -> list[str]:
    """The types of the tables that all refreshes read, as `history` shows them."""
    world = shop.world()
    node = world.graph.model(f"model.shop.{model}")
    storage = world.observed.table(node.storage)
    assert storage is not None
    return [t.type for p in history(storage) for t in described(world, node, p.record).base_tables]


@pytest.mark.parametrize("keep", [1, 2])
@pytest.mark.parametrize("declared", [True, False])
def test_a_rollback_records_what_kind_of_table_was_read(shop: Shop, keep: int, declared: bool) -> None:
    config = f"name: shop\nmodels: {{+storage: {{format: metadata-file}}, +refresh_history: {keep}}}\n"
    shop.write(
        {"mvbuild.yml": config, "models/held.sql": "SELECT id FROM {{ source('files', 'stock') }} JOIN {{ source('files', 'prices') }}\n"}
    )
    kinds = {"/raw/stock": "iceberg-filesystem", "/raw/prices": "deltalake-filesystem"}
    shop.run("held")
    assert types(shop, "held") == {1: kinds}
    shop.write({"models/held.sql": "SELECT id FROM raw.orders\n"})
    if not declared:
        (shop.root / "models/s.yml").unlink()
        (shop.root / "models/dear.sql").unlink()
    shop.run("held")
    assert described_types(shop, "held")[:2] == ["iceberg-filesystem", "deltalake-filesystem"]
    went(shop, "held", 1)
    assert types(shop, "held")[1] == kinds
    assert ("iceberg-metastore" in types(shop, "held").get(2, {}).values()) == (keep == 2)


def test_what_cannot_be_read_blocks_only_its_readers(shop: Shop) -> None:
    assert isinstance(shop.sources, Moved)
    shop.sources.fails = "prices"
    shop.sources.message = "it is gone"
    found = {s.node.rpartition(".")[2]: s.diagnostic for s in shop.plan().steps}
    diagnostic = found["dear"]
    assert diagnostic is not None
    assert (diagnostic.code, str(diagnostic.span), diagnostic.help) == ("missing-package", "models/dear.sql:1:16", "install it")
    assert [str(note.span) for note in diagnostic.notes] == ["models/s.yml:1:41"]
    assert shop.statuses() == {"dear": "error", "held": "success"}


def test_a_view_of_the_catalog_that_reads_one(shop: Shop) -> None:
    shop.write({"models/dear_view.sql": "{{ config(materialized='view') }}\nSELECT id FROM {{ source('files', 'prices') }}\n"})
    shop.run("dear_view")
    (shop.root / "models/dear_view.sql").unlink()
    shop.write({"models/over.sql": "SELECT id FROM main.dear_view\n"})
    shop.run("over")
    assert "spark_catalog.delta.`/raw/prices` VERSION AS OF 0" in shop.engine.executed[-1]
    append(shop.catalog, "raw.orders")
    assert shop.actions("over") == {"over": "reuse"}


DELTA_TABLE = SourceLocation(identifier=TableIdentifier("", (), "/raw/prices"), type="deltalake-filesystem")
STORE = SourceLocation(identifier=TableIdentifier("crm", ("a",), "b"), type="iceberg-metastore", options={"uri": "sqlite:///c.db"})


def target(**config: str) -> Target:
    return Target(
        name="t",
        catalog_name="lake",
        catalog={"type": "rest", "uri": "http://x"},
        namespace=("n",),
        spark=SparkSettings(config={key.replace("_", "."): value for key, value in config.items()}),
        threads=1,
        embedded=False,
    )


def test_a_session_gets_delta_only_where_it_is_needed() -> None:
    assert "spark.sql.catalog.spark_catalog" not in session_conf(target(), [STORE])
    found = session_conf(target(spark_sql_extensions="my.Own"), [DELTA_TABLE])
    assert found["spark.sql.catalog.spark_catalog"].endswith("DeltaCatalog")
    assert [name.rpartition(".")[2] for name in found["spark.sql.extensions"].split(",")] == [
        "IcebergSparkSessionExtensions",
        "DeltaSparkSessionExtension",
        "Own",
    ]


def test_jars_of_sources() -> None:
    release = RELEASES["4.0"]
    assert needed([], {}, release) == ()
    assert needed([DELTA_TABLE, STORE], {}, release) == (release.runtime, SQLITE, *release.delta)
    assert needed([DELTA_TABLE], {"spark.jars.packages": "io.delta:delta-spark_2.13:4.2.0"}, release) == ()
