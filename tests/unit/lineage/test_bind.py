"""A project on disk -> Bound: columns of every node, lineage across models, places of findings, contracts."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from mvbuild.cache.store import FILE, Cache
from mvbuild.diagnostics import Diagnostic, ProjectError
from mvbuild.graph.model import Graph
from mvbuild.lineage.bind import bind
from mvbuild.lineage.lock import of_lock, read_lock
from mvbuild.lineage.model import Bound
from mvbuild.lineage.trace import affected, as_json, find, flat, named, tree
from unit.worlds import compiled

LOCK = """version: 1
tables:
  raw.customers:
    uuid: 8a1c
    columns: {id: bigint, country: string}
  raw.orders:
    columns:
      id: bigint
      customer_id: bigint
      amount: decimal(12,2)
      items: array<struct<sku:string,qty:int>>
"""
FILES = {
    "mvbuild.yml": "name: shop\n",
    "schemas.lock": LOCK,
    "models/orders_clean.sql": "{{ config(materialized='view') }}\nSELECT id, customer_id, amount * 2 AS amount FROM raw.orders WHERE id > 0\n",
    "models/daily.sql": "SELECT c.country, sum(o.amount) AS total\nFROM {{ ref('orders_clean') }} o\n"
    "JOIN raw.customers c ON c.id = o.customer_id\nGROUP BY c.country\n",
    "models/top.sql": "SELECT *, rank() OVER (ORDER BY total) AS place FROM {{ ref('daily') }}\n",
}


def bound(root: Path, files: Mapping[str, str]) -> Bound:
    graph = compiled(root, files)
    tables = read_lock(graph)
    return bind(graph, of_lock(tables, graph)) if tables is not None else bind(graph)


def shown(diagnostics: tuple[Diagnostic, ...]) -> list[str]:
    return [f"{d.severity} {d.code} {d.span}: {d.span.text if d.span else ''}" for d in diagnostics]


def origins(found: Bound, name: str) -> str:
    node, column = find(found, name)
    assert column is not None
    return " ".join(sorted(named(found, o) for o in found.origins(node.id, column)))


def test_columns_have_types_through_views_and_mvs(tmp_path: Path) -> None:
    found = bound(tmp_path, FILES)
    assert found.diagnostics == ()
    top = found.columns["model.shop.top"]
    assert [(c.name, c.type) for c in top] == [("country", "string"), ("total", "decimal(24,2)"), ("place", "int")]
    assert str(top[2].span) == "models/top.sql:1:43"


def test_origins_go_to_base_columns(tmp_path: Path) -> None:
    found = bound(tmp_path, FILES)
    assert origins(found, "top.total") == "raw.orders.amount"
    assert origins(found, "top.place") == "raw.orders.amount"
    assert origins(found, "TOP.Country") == "raw.customers.country"
    indirect = sorted(named(found, o) for o in found.indirect("model.shop.top"))
    assert indirect == ["raw.customers.country", "raw.customers.id", "raw.orders.customer_id", "raw.orders.id"]
    assert not found.is_unsure("model.shop.top", "total")


def test_downstream(tmp_path: Path) -> None:
    found = bound(tmp_path, FILES)
    node, column = find(found, "raw.orders.amount")
    assert column == "amount"
    step = tree(found, next(iter(found.origins(node.id, column))), "downstream")
    assert sorted(named(found, o) for o in flat(step)) == ["daily.total", "orders_clean.amount", "top.place", "top.total"]
    node, column = find(found, "raw.orders.id")
    assert [id.rpartition(".")[2] for id in affected(found, next(iter(found.origins(node.id, "id"))))] == ["orders_clean", "daily", "top"]


def test_json(tmp_path: Path) -> None:
    found = bound(tmp_path, FILES)
    node, column = find(found, "top.total")
    made = as_json(found, node, column, "upstream")
    assert made["columns"] == [
        {
            "name": "total",
            "type": "decimal(24,2)",
            "sure": True,
            "parents": [{"node": "model.shop.daily", "table": "lake.main.daily", "column": "total"}],
            "origins": [{"node": "table.lake.raw.orders", "table": "lake.raw.orders", "column": "amount"}],
        }
    ]


def test_names_that_do_not_exist(tmp_path: Path) -> None:
    found = bound(tmp_path, FILES)
    for name in ("topp", "top.totals", "raw.orders.nope", "nowhere.id"):
        with pytest.raises(ProjectError) as caught:
            find(found, name)
        assert [d.code for d in caught.value.diagnostics] == ["unknown-name"]


@pytest.mark.parametrize(
    ("sql", "notes"),
    [
        ("SELECT {{ var('nothing') }} AS x FROM raw.orders", ["the template writes None"]),
        ("SELECT {{ 'nope' }} FROM raw.orders", ["the template writes nope"]),
        ("SELECT nope, {{ 'id' }} FROM raw.orders", []),
        ("SELECT {{ ref('orders_clean') }}.nope FROM {{ ref('orders_clean') }}", []),
    ],
)
def test_a_name_that_only_the_template_writes_is_shown(tmp_path: Path, sql: str, notes: list[str]) -> None:
    project = FILES.get("mvbuild.yml", "name: shop\n") + "vars: {nothing: null}\n"
    (diagnostic,) = bound(tmp_path, {**FILES, "mvbuild.yml": project, "models/m.sql": sql}).diagnostics
    assert [note.message for note in diagnostic.notes] == notes


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT o.nope FROM raw.orders o", "unknown-column models/m.sql:1:10: nope"),
        ("SELECT amount,\n  nope\nFROM {{ ref('orders_clean') }}", "unknown-column models/m.sql:2:3: nope"),
        ("SELECT {{ ref('orders_clean') }}.nope FROM {{ ref('orders_clean') }}", "unknown-column models/m.sql:1:34: nope"),
        (
            "SELECT {% for c in ['id', 'nope'] %}\n  {{ c }},{% endfor %} 1 AS one FROM raw.orders",
            "unknown-column models/m.sql:2:3: {{ c }}",
        ),
        ("SELECT 1 AS one FROM raw.nothing", "missing-table models/m.sql:1:22: raw.nothing"),
        ("SELECT id, amount AS ID FROM raw.orders", "duplicate-column models/m.sql:1:22: ID"),
        ("SELECT id FROM raw.orders JOIN raw.customers ON true", "ambiguous-column models/m.sql:1:8: id"),
        ("SELECT id FROM raw.orders UNION ALL SELECT id, country FROM raw.customers", "column-count models/m.sql:1:44: id"),
    ],
)
def test_findings_stand_where_the_user_wrote(tmp_path: Path, sql: str, expected: str) -> None:
    found = bound(tmp_path, {**FILES, "models/m.sql": sql})
    assert [s[: len(expected) + 6] for s in shown(found.diagnostics)] == [f"error {expected}"]


def test_messages_have_the_names_of_the_user(tmp_path: Path) -> None:
    found = bound(tmp_path, {**FILES, "models/m.sql": "SELECT {{ ref('orders_clean') }}.amonut FROM {{ ref('orders_clean') }}"})
    (diagnostic,) = found.diagnostics
    assert diagnostic.message == "'orders_clean' has no column 'amonut'"
    assert diagnostic.help == "Did you mean 'amount'?"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM raw.orders.snapshots",
        "SELECT old_name FROM raw.orders VERSION AS OF 12",
        "SELECT orders_clean.id FROM {{ ref('orders_clean') }}",
        "SELECT lake.main.orders_clean.id FROM {{ ref('orders_clean') }}",
        "SELECT it.sku FROM raw.orders LATERAL VIEW explode(items) AS it",
        "{{ config(materialized='ephemeral') }} SELECT id, id FROM raw.orders",
        "{% macro twice(x) %}{{ x }} * 2{% endmacro %}SELECT {{ twice('amount') }} AS a FROM raw.orders",
    ],
)
def test_nothing_is_said_of_what_is_right(tmp_path: Path, sql: str) -> None:
    assert bound(tmp_path, {**FILES, "models/m.sql": sql}).diagnostics == ()


def test_without_a_lock_names_still_lead_to_tables(tmp_path: Path) -> None:
    found = bound(tmp_path, {name: text for name, text in FILES.items() if name != "schemas.lock"})
    assert found.diagnostics == ()
    assert [(c.name, c.type) for c in found.columns["model.shop.top"]] == [("country", None), ("total", None), ("place", "int")]
    assert origins(found, "top.total") == "raw.orders.amount"
    assert "table.lake.raw.orders" not in found.columns
    assert origins(found, "raw.orders.amount") == "raw.orders.amount"


def test_sources_and_seeds_tell_their_columns(tmp_path: Path) -> None:
    found = bound(
        tmp_path,
        {
            "mvbuild.yml": "name: shop\nseeds: {rates: {+column_types: {rate: 'decimal(6,4)'}}}\n",
            "seeds/rates.csv": "currency,rate\nEUR,1.0\n",
            "models/sources.yml": "sources: [{name: raw, tables: [{name: orders, columns: [{name: amount, data_type: 'numeric(12,2)'}]}]}]\n",
            "models/m.sql": "SELECT o.amount, o.other, r.rate, r.currency FROM {{ source('raw', 'orders') }} o JOIN {{ ref('rates') }} r ON true",
            "models/n.sql": "SELECT r.nope FROM {{ ref('rates') }} r",
        },
    )
    assert [(c.name, c.type) for c in found.columns["model.shop.m"]] == [
        ("amount", "decimal(12,2)"),
        ("other", None),
        ("rate", "decimal(6,4)"),
        ("currency", "string"),
    ]
    assert [d.code for d in found.diagnostics] == ["unknown-column"]


CONTRACT = """models:
  - name: daily
    config: {contract: %s}
    columns:
%s"""


def contract(*columns: tuple[str, str | None], enforced: str = "enforced") -> str:
    lines = [f"      - {{name: {name}{f', data_type: {chr(39)}{type_}{chr(39)}' if type_ else ''}}}\n" for name, type_ in columns]
    return CONTRACT % (enforced, "".join(lines))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([("country", "string"), ("total", "decimal(24,2)")], []),
        ([("COUNTRY", "varchar(3)"), ("total", "NUMERIC(24, 2)")], []),
        (
            [("total", "decimal(24,2)"), ("country", "string")],
            ["error: Column 1 of 'daily' is 'country', and the contract has 'total' there"],
        ),
        ([("country", "string")], ["error: The contract does not declare the column 'total'"]),
        (
            [("country", "string"), ("total", "decimal(24,2)"), ("more", "int")],
            ["error: 'daily' has no column 'more'"],
        ),
        (
            [("country", "int"), ("total", "double")],
            [
                "error: Column 'country' has type string, and the contract has int",
                "error: Column 'total' has type decimal(24,2), and the contract has double",
            ],
        ),
        ([("country", "string"), ("total", None)], ["error: The contract declares no type for column 'total'"]),
        ([("country", "text2"), ("total", "decimal(24,2)")], ["error: Unknown type 'text2'"]),
    ],
)
def test_contracts(tmp_path: Path, columns: list[tuple[str, str | None]], expected: list[str]) -> None:
    found = bound(tmp_path, {**FILES, "models/daily.yml": contract(*columns)})
    assert [f"{d.severity}: {d.message}" for d in found.diagnostics] == expected
    assert all(d.span is not None for d in found.diagnostics)


def test_a_contract_that_cannot_be_compared_is_a_warning(tmp_path: Path) -> None:
    files = {name: text for name, text in FILES.items() if name != "schemas.lock"}
    found = bound(tmp_path, {**files, "models/daily.yml": contract(("country", "string"), ("total", "decimal(24,2)"))})
    assert [(d.severity, d.code) for d in found.diagnostics] == [("warning", "unchecked-contract")] * 2


def test_dbts_way_to_enforce_a_contract(tmp_path: Path) -> None:
    found = bound(tmp_path, {**FILES, "models/daily.yml": contract(("country", "string"), enforced="{enforced: true}")})
    assert [d.code for d in found.diagnostics] == ["broken-contract"]
    graph: Graph = compiled(
        tmp_path / "off", {**FILES, "models/daily.yml": contract(enforced="{enforced: false}").replace("columns:", "columns: []")}
    )
    assert not graph.model("model.shop.daily").model.config.contract


def test_what_was_kept_is_what_would_be_bound(tmp_path: Path) -> None:
    files = {
        **FILES,
        "models/m.sql": "SELECT nope, raw.orders.id, u.x FROM raw.orders JOIN raw.unknown u ON u.x = amount",
        "models/n.sql": "SELECT * FROM {{ ref('m') }}",
    }
    lock = read_lock(compiled(tmp_path, files))
    assert lock is not None

    def kept() -> Bound:
        graph = compiled(tmp_path)
        return bind(graph, of_lock(lock, graph), keep=True)

    def facts(found: Bound) -> tuple[object, ...]:
        return found.columns, found.lineage, [(d.code, d.message, str(d.span)) for d in found.diagnostics]

    fresh = facts(bound(tmp_path, files))
    assert facts(kept()) == fresh
    path = tmp_path / "target" / FILE
    written = path.read_bytes()
    assert facts(kept()) == fresh
    assert path.read_bytes() == written
    (tmp_path / "models" / "orders_clean.sql").write_text("SELECT id, customer_id, 'x' AS amount FROM raw.orders")
    assert kept().columns == bound(tmp_path, {}).columns
    with closing(sqlite3.connect(path)) as connection:
        entries = {key: content.decode() for key, content in connection.execute("SELECT key, content FROM bindings")}
    for foreign in ("", "[]", "{", "[[1, 2], 3]", None):
        cache = Cache(path)
        for key, text in entries.items():
            cache.bindings.put(key, text.replace('"raw', "[") if foreign is None else foreign)
        cache.save()
        assert kept().columns == bound(tmp_path, {}).columns
