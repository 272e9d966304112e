"""Plain PyIceberg reads everything that the SQL adapter writes, and can write to it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from behaviour.world import embedded_properties, layout, name, schema, table_commit, view_commit
from mvbuild.ports.commits import TableLayout
from mvbuild.ports.states import Partition, Sort, TableState, ViewState

if TYPE_CHECKING:
    from behaviour.world import World


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_every_format_version(sql_world: World, version: str) -> None:
    wanted = TableLayout(
        schema=schema(id="long", day="date"),
        partition_by=(Partition(column="day", transform="month"),),
        sort_by=(Sort(column="id", descending=False, nulls_first=True),),
    )
    table = sql_world.catalog.create_table(name("mart.t"), wanted, {"format-version": version, "a": "b"})
    table = sql_world.catalog.create_branch(table, "audit")
    (done,) = sql_world.catalog.commit([table_commit(table, set_snapshot_id=table.refs["audit"], drop_branches=("audit",))]).values()
    assert isinstance(done, TableState)
    assert done.format_version == int(version)
    assert sql_world.pyiceberg
    plain = sql_world.pyiceberg()
    found = plain.load_table("mart.t")
    assert found.metadata.format_version == int(version)
    assert found.metadata.current_snapshot_id == done.current_snapshot_id
    assert found.scan().to_arrow().num_rows == 0
    assert found.properties == {"a": "b"}
    assert [entry.snapshot_id for entry in found.history()] == [done.current_snapshot_id]
    if version != "3":
        with found.transaction() as transaction:
            transaction.set_properties({"c": "d"})
        reloaded = sql_world.catalog.load([table.identifier])[table.identifier]
        assert reloaded.properties == {"a": "b", "c": "d"}
    plain.close()


def test_seed_and_namespace(sql_world: World) -> None:
    sql_world.catalog.replace_rows(name("seeds.s"), layout(a="int"), {"a": [1, 2]}, {})
    sql_world.catalog.replace_rows(name("seeds.s"), layout(a="long", b="string"), {"a": [3], "b": ["x"]}, {})
    assert sql_world.pyiceberg
    plain = sql_world.pyiceberg()
    assert sorted(plain.list_namespaces()) == [("mart",), ("seeds",)]
    table = plain.load_table("seeds.s")
    assert table.scan().to_arrow().to_pylist() == [{"a": 3, "b": "x"}]
    first = table.snapshots()[0].snapshot_id
    assert table.scan(snapshot_id=first).to_arrow().to_pylist() == [{"a": 1}, {"a": 2}]
    plain.close()


def test_view_metadata(sql_world: World) -> None:
    from pyiceberg.view.metadata import ViewMetadata

    (state,) = sql_world.catalog.commit([view_commit("mart.v", storage_table=name("mart.v_store"))]).values()
    assert isinstance(state, ViewState)
    for version in range(2, 14):
        change = view_commit("mart.v", expect=state.metadata_location, version=version)
        (state,) = sql_world.catalog.commit([change]).values()
        assert isinstance(state, ViewState)
        if version == 2:
            raw: dict[str, Any] = json.loads(Path(state.metadata_location.removeprefix("file:")).read_text())
            assert raw["versions"][0]["storage-table"] == {"catalog": "lake", "namespace": ["mart"], "name": "v_store"}
    raw = json.loads(Path(state.metadata_location.removeprefix("file:")).read_text())
    read = ViewMetadata.model_validate(raw)
    assert read.current_version_id == 13
    assert [version["version-id"] for version in raw["versions"]] == list(range(4, 14))
    assert [entry["version-id"] for entry in raw["version-log"]] == list(range(4, 14))
    assert len(raw["schemas"]) == 1
    assert raw["versions"][-1]["summary"]["engine-name"] == "mvbuild"
    assert raw["versions"][-1]["default-catalog"] == "lake"
    assert "/mart/v/metadata/00013-" in state.metadata_location
    assert sql_world.pyiceberg
    plain = sql_world.pyiceberg()
    assert plain.list_tables("mart") == []
    plain.close()


def test_reading_imports_no_heavy_library(sql_world: World, tmp_path: Path) -> None:
    sql_world.catalog.create_table(name("mart.t"), layout(id="long"), {})
    code = (
        "import sys\nfrom mvbuild.adapters import open_catalog\nfrom mvbuild.names import TableIdentifier\n"
        f"catalog = open_catalog('lake', {embedded_properties(tmp_path)!r}, embedded=True)\n"
        "assert len(catalog.load([TableIdentifier.parse('mart.t', 'lake')])) == 1\n"
        "print(*({'pyiceberg', 'sqlalchemy', 'pydantic', 'pyarrow', 'requests'} & set(sys.modules)))\n"
    )
    here = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(here / "compiler")}, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
