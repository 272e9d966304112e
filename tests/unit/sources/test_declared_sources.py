"""YAML of sources -> their types and places, what contradicts itself, and how SQL finds them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.diagnostics import Diagnostic, ProjectError
from mvbuild.graph.definition import definition
from mvbuild.graph.model import Graph, TableNode
from mvbuild.graph.outside import absolute
from mvbuild.names import TableIdentifier
from unit.project.project_on_disk import errors, load, places
from unit.worlds import compiled

STORE = "    properties: {type: sql, uri: 'sqlite:///c.db', pool: 3, echo: false}\n"


def sources(*lines: str) -> dict[str, str]:
    return {"models/s.yml": "sources:\n" + "".join(f"{line}\n" if not line.endswith("\n") else line for line in lines)}


def test_the_type_of_a_table_wins_over_that_of_its_source(tmp_path: Path) -> None:
    files = sources(
        "  - name: lakes",
        "    type: deltalake-filesystem",
        "    properties: {AWS_REGION: eu, retries: 3}",
        "    tables:",
        "      - {name: a, path: x/a, properties: {retries: 5, 'fs.s3a.path': true}}",
        "      - {name: b, path: 's3://raw/b/', type: iceberg-filesystem}",
        "      - {name: c, type: iceberg-metastore}",
    )
    a, b, c = load(tmp_path, files).sources
    assert (a.type, a.path, dict(a.options)) == (
        "deltalake-filesystem",
        "x/a",
        {"AWS_REGION": "eu", "retries": "5", "fs.s3a.path": "true"},
    )
    assert (b.type, b.path, dict(b.options)) == ("iceberg-filesystem", "s3://raw/b/", {})
    assert (c.type, c.path, dict(c.options)) == ("iceberg-metastore", None, {})


def test_properties_take_secrets_from_the_environment(tmp_path: Path) -> None:
    files = sources("  - name: crm", "    catalog: crm", "    properties: {token: \"{{ env_var('T') }}\"}", "    tables: [{name: a}]")
    (table,) = load(tmp_path, files, env={"T": "s3cret"}).sources
    assert dict(table.options) == {"token": "s3cret"}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("  - name: s", "    tables: [{name: a, type: delta}]"), [("wrong-type", "models/s.yml:3:30")]),
        (("  - name: s", "    type: delta", "    tables: [{name: a}, {name: b}]"), [("wrong-type", "models/s.yml:3:11")]),
        (("  - name: s", "    tables: [{name: a, type: deltalake-filesystem}]"), [("missing-key", "models/s.yml:3:21")]),
        (("  - name: s", "    tables: [{name: a, path: /x}]"), [("bad-config", "models/s.yml:3:24")]),
        (("  - name: s", "    tables: [{name: a, path: [x]}]"), [("wrong-type", "models/s.yml:3:30"), ("bad-config", "models/s.yml:3:24")]),
        (("  - name: s", "    path: /x", "    tables: []"), [("unknown-key", "models/s.yml:3:5")]),
        (("  - name: s", STORE, "    tables: [{name: a}]"), [("bad-config", "models/s.yml:3:5")]),
        (
            ("  - name: s", "    tables: [{name: a, type: iceberg-filesystem, path: x, identifier: b}]"),
            [("bad-config", "models/s.yml:3:59")],
        ),
        (
            ("  - name: s", "    catalog: c", "    tables: [{name: a, properties: {x: [1]}}]"),
            [("wrong-type", "models/s.yml:4:40")],
        ),
    ],
)
def test_what_contradicts_itself(tmp_path: Path, lines: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    assert places(errors(tmp_path, sources(*lines))) == expected


def failure(root: Path, *lines: str, sql: str = "SELECT 1 AS one") -> list[Diagnostic]:
    with pytest.raises(ProjectError) as caught:
        compiled(root, {"mvbuild.yml": "name: shop\n", "models/m.sql": sql, **sources(*lines)})
    return list(caught.value.diagnostics)


@pytest.mark.parametrize(
    ("lines", "place", "says"),
    [
        (("  - name: s", "    catalog: lake", STORE, "    tables: [{name: a}]"), "4:5", "the target's own"),
        (("  - name: s", "    catalog: LAKE", STORE, "    tables: [{name: a}]"), "4:5", "the target's own"),
        (("  - name: s", "    catalog: my.store", STORE, "    tables: [{name: a}]"), "3:5", "Spark does not accept"),
        (("  - name: s", "    catalog: spark_catalog", STORE, "    tables: [{name: a}]"), "3:5", "Spark does not accept"),
        (("  - name: s", "    catalog: other", "    tables: [{name: a}]"), "4:21", "has catalog 'lake'"),
        (
            (
                "  - name: s",
                "    catalog: other",
                STORE,
                "    tables: [{name: a}]",
                "  - name: t",
                "    catalog: other",
                "    properties: {type: rest}",
                "    tables: [{name: b}]",
            ),
            "8:5",
            "different properties",
        ),
        (
            (
                "  - name: s",
                "    tables:",
                "      - {name: a, type: iceberg-filesystem, path: x/y}",
                "      - {name: b, type: deltalake-filesystem, path: x/y/}",
            ),
            "5:47",
            "the same path",
        ),
    ],
)
def test_places_that_cannot_be(tmp_path: Path, lines: tuple[str, ...], place: str, says: str) -> None:
    (found,) = failure(tmp_path, *lines)
    assert (found.code, str(found.span)) == ("bad-config", f"models/s.yml:{place}")
    assert says in found.message


DECLARED = (
    "  - name: crm",
    "    catalog: Other",
    "    namespace: eu.crm",
    STORE,
    "    tables: [{name: people, identifier: people_v2}]",
    "  - name: more",
    "    catalog: other",
    "    tables: [{name: orders}]",
    "  - name: files",
    "    tables:",
    "      - {name: prices, type: deltalake-filesystem, path: ../raw/The prices}",
    "      - {name: stock, type: iceberg-filesystem, path: 's3://raw/stock'}",
)


def project(root: Path, sql: str) -> Graph:
    return compiled(root, {"mvbuild.yml": "name: shop\n", "models/m.sql": sql, **sources(*DECLARED)})


@pytest.mark.parametrize(
    ("sql", "node"),
    [
        ("SELECT * FROM {{ source('crm', 'people') }}", "source.shop.crm.people"),
        ("SELECT * FROM other.eu.crm.people_v2", "source.shop.crm.people"),
        ("SELECT * FROM OTHER.more.Orders", "source.shop.more.orders"),
        ("SELECT * FROM files.prices", "source.shop.files.prices"),
    ],
)
def test_how_sql_finds_them(tmp_path: Path, sql: str, node: str) -> None:
    assert project(tmp_path, sql).nodes["model.shop.m"].reads == (node,)


def test_where_they_lie(tmp_path: Path) -> None:
    graph = project(tmp_path, "SELECT 1 AS one")
    assert set(graph.outside) == {
        TableIdentifier("Other", ("eu", "crm"), "people_v2"),
        TableIdentifier("Other", ("more",), "orders"),
        TableIdentifier("", (), f"{tmp_path.parent}/raw/The prices"),
        TableIdentifier("", (), "s3://raw/stock"),
    }
    orders = graph.nodes["source.shop.more.orders"]
    assert isinstance(orders, TableNode)
    assert orders.outside is not None
    assert orders.outside.options["uri"] == "sqlite:///c.db"
    assert "sqlite" not in repr(orders.outside)


def test_a_table_of_another_metastore_must_be_declared(tmp_path: Path) -> None:
    (found,) = failure(tmp_path, *DECLARED, sql="SELECT * FROM other.crm.gone")
    assert (found.code, str(found.span)) == ("unresolved-source", "models/m.sql:1:15")


def test_views_name_them_as_spark_reads_them(tmp_path: Path) -> None:
    graph = project(tmp_path, "SELECT prices.x FROM files.prices, {{ source('crm', 'people') }} p, more.orders VERSION AS OF 7")
    assert definition(graph, graph.model("model.shop.m")).text == (
        f"SELECT prices.x FROM spark_catalog.delta.`{tmp_path.parent}/raw/The prices` AS prices, "
        "Other.eu.crm.people_v2 p, Other.more.orders VERSION AS OF 7"
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("raw/a", "/p/raw/a"),
        ("./raw//a/", "/p/raw/a"),
        ("/raw/a", "/raw/a"),
        ("file:/raw/a", "/raw/a"),
        ("file:///raw/a/", "/raw/a"),
        ("s3://Raw/A/", "s3://Raw/A"),
        ("abfss://c@h/x", "abfss://c@h/x"),
    ],
)
def test_one_place_has_one_spelling(path: str, expected: str) -> None:
    assert absolute(path, "/p") == expected


def test_paths_are_names_with_a_case() -> None:
    path = TableIdentifier("", (), "/Raw/a.b")
    assert (str(path), path.dotted, path.sql, path.is_path) == ("/Raw/a.b", "/Raw/a.b", "`/Raw/a.b`", True)
    assert path.key != TableIdentifier("", (), "/raw/a.b").key
