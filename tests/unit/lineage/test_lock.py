"""schemas.lock: written from the catalog, read back, compared; and what `compile` makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mvbuild import api
from mvbuild.cli.main import group
from mvbuild.diagnostics import ProjectError
from mvbuild.lineage.lock import differences, lock_name, locked, of_lock, read_lock, to_text
from mvbuild.lineage.model import Column
from mvbuild.lineage.schemas import TableColumns, of_states
from mvbuild.names import TableIdentifier
from unit.lineage.test_bind import FILES, LOCK
from unit.review.repositories import repository
from unit.worlds import base_table, compiled, shop, write_project


def test_the_catalogs_tables_are_written_and_read_back(tmp_path: Path) -> None:
    made = shop(tmp_path)
    world = made.world()
    tables, missing = locked(world.graph, of_states(world.observed.states))
    assert list(tables) == ["raw.customers", "raw.orders"]
    assert not missing
    (tmp_path / "schemas.lock").write_text(to_text(tables))
    assert read_lock(world.graph) == tables
    assert not list(differences(tables, tables))
    schemas = of_lock(tables, world.graph)
    assert schemas.of(TableIdentifier("lake", ("RAW",), "Orders")) == TableColumns(
        columns=(Column("id", "bigint"),), uuid=tables["raw.orders"].uuid
    )


def test_tables_that_are_not_there_are_told(tmp_path: Path) -> None:
    made = shop(tmp_path).write({"models/more.sql": "SELECT x FROM raw.later"})
    world = made.world()
    _, missing = locked(world.graph, of_states(world.observed.states))
    assert [n.identifier.dotted for n in missing] == ["raw.later"]
    base_table(made.catalog, "raw.later")
    world = made.world()
    assert list(locked(world.graph, of_states(world.observed.states))[0]) == ["raw.customers", "raw.later", "raw.orders"]


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8)


@given(
    st.lists(
        st.tuples(words, st.sampled_from(["int", "struct<`a b`:int>", "decimal(3,1)", None])),
        min_size=1,
        max_size=4,
        unique_by=lambda c: c[0],
    )
)
def test_odd_names_survive(tmp_path_factory: pytest.TempPathFactory, columns: list[tuple[str, str | None]]) -> None:
    graph = compiled(tmp_path_factory.mktemp("p"), {"mvbuild.yml": "name: shop\n"})
    name = lock_name(TableIdentifier("lake", ("raw", columns[0][0]), "a.b`c"), graph)
    tables = {name: TableColumns(columns=tuple(Column(*c) for c in columns), uuid="1")}
    (graph.project.root / "schemas.lock").write_text(to_text(tables), encoding="utf-8")
    assert read_lock(graph) == tables
    (key,) = of_lock(tables, graph).tables
    assert key == TableIdentifier("lake", ("raw", columns[0][0]), "a.b`c").key


def test_names_of_other_places(tmp_path: Path) -> None:
    graph = compiled(tmp_path, {"mvbuild.yml": "name: shop\n"})
    other, inside, far = (
        TableIdentifier("pg", ("raw",), "orders"),
        TableIdentifier("", (), f"{graph.project.root.as_posix()}/data/orders"),
        TableIdentifier("", (), "s3://raw/orders"),
    )
    names = [lock_name(i, graph) for i in (other, inside, far)]
    assert names == ["`@pg`.raw.orders", "./data/orders", "s3://raw/orders"]
    found = of_lock({name: TableColumns(columns=()) for name in names}, graph)
    assert set(found.tables) == {i.key for i in (other, inside, far)}


def test_differences() -> None:
    before = {
        "raw.a": TableColumns(columns=(Column("id", "int"), Column("x", "string")), uuid="1"),
        "raw.gone": TableColumns(columns=()),
        "raw.moved": TableColumns(columns=(Column("a", "int"), Column("b", "int"))),
    }
    now = {
        "raw.a": TableColumns(columns=(Column("id", "bigint"), Column("y", "date")), uuid="2"),
        "raw.moved": TableColumns(columns=(Column("b", "int"), Column("a", "int"))),
        "raw.new": TableColumns(columns=()),
    }
    assert list(differences(before, now)) == [
        "raw.a: is a different table with the same name (its UUID differs)",
        "raw.a: column y date was added",
        "raw.a: column x was removed",
        "raw.a: column id was int, and is now bigint",
        "raw.gone: not in the catalog, or no longer read",
        "raw.moved: its columns are in a different order",
        "raw.new: not in schemas.lock",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a",
        "version: 2\ntables: {}",
        "tables: {}",
        "version: 1\ntables: {a: 1}",
        "version: 1\ntables: {a: {columns: {x: int8}}}",
        "a: [",
        "version: 1\ntables: {a: {columns: {x: 1}}}",
    ],
)
def test_a_lock_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    graph = compiled(tmp_path, {**FILES, "schemas.lock": text})
    with pytest.raises(ProjectError) as caught:
        read_lock(graph)
    assert {d.code for d in caught.value.diagnostics} == {"bad-lock"}


def run(root: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(group, [*words, "--project-dir", str(root)], standalone_mode=False)
    assert result.exception is None, result.output
    return result.return_value, result.output


def test_compile_takes_the_lock(tmp_path: Path) -> None:
    write_project(tmp_path, {**FILES, "models/m.sql": "SELECT nope FROM raw.orders\n"})
    code, output = run(tmp_path, "compile")
    assert code == 2
    assert "unknown-column" in output
    assert "models/m.sql:1:8" in output
    assert (tmp_path / "target" / "manifest.json").exists()
    (tmp_path / "schemas.lock").unlink()
    assert run(tmp_path, "compile")[0] == 0


WRONG = {
    "an unknown column": ("unknown-column", {"models/m.sql": "SELECT nope, 'x' AS x FROM raw.orders LIMIT 1\n"}),
    "a broken contract": (
        "broken-contract",
        {
            "models/m.sql": "SELECT id FROM raw.orders LIMIT 1\n",
            "models/m.yml": "models: [{name: m, config: {contract: {enforced: true}}, columns: [{name: id, data_type: string}]}]\n",
        },
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_lint_takes_the_lock_and_still_reports_its_findings(tmp_path: Path, wrong: str) -> None:
    expected, files = WRONG[wrong]
    write_project(tmp_path, FILES)
    assert expected not in run(tmp_path, "lint")[1]
    write_project(tmp_path, files)
    code, output = run(tmp_path, "lint")
    assert code == 2
    assert output.count(f"error[{expected}]") == run(tmp_path, "compile")[1].count(f"error[{expected}]") == 1
    assert "warning[limit-without-order]" in output
    assert expected in run(tmp_path, "lint", "--quiet", "--output", "github")[1]


@pytest.mark.parametrize("command", ["plan", "run --dry-run", "plan --against main"])
def test_plans_take_the_lock(tmp_path: Path, command: str) -> None:
    root = repository(tmp_path, FILES)
    write_project(root, WRONG["an unknown column"][1])
    code, output = run(root, *command.split())
    assert (code, output.count("error[unknown-column]")) == (2, 1)


def test_compile_checks_contracts_without_a_lock(tmp_path: Path) -> None:
    write_project(
        tmp_path,
        {
            "mvbuild.yml": "name: shop\n",
            "models/m.sql": "SELECT 1 AS one, CAST(NULL AS date) AS day\n",
            "models/m.yml": "models: [{name: m, config: {contract: enforced}, columns: [{name: one, data_type: int}, {name: day, data_type: string}]}]\n",
        },
    )
    code, output = run(tmp_path, "compile")
    assert (code, output.count("broken-contract")) == (2, 1)
    assert "models/m.sql:1:40" in output


def test_a_lock_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project(tmp_path, {"mvbuild.yml": "name: shop\n", "models/m.sql": "SELECT id FROM raw.orders\n"})
    api.catalog_of(api.compile(tmp_path)).ensure_namespace(("raw",))

    def refuse(path: Path, *_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "write_text", refuse)
    result = CliRunner().invoke(group, ["lock", "--project-dir", str(tmp_path)], standalone_mode=False)
    assert result.return_value == 2
    assert f"error[unwritable-file]: Cannot write to {tmp_path / 'schemas.lock'}: Permission denied" in result.output
    assert "target" not in result.output


def test_lock_and_check(tmp_path: Path) -> None:
    write_project(tmp_path, {"mvbuild.yml": "name: shop\n", "models/m.sql": "SELECT id FROM raw.orders\n"})
    catalog = api.catalog_of(api.compile(tmp_path))
    catalog.ensure_namespace(("raw",))
    code, output = run(tmp_path, "lock", "--check")
    assert code == 1
    assert "There is no schemas.lock" in output
    code, output = run(tmp_path, "lock")
    assert code == 0
    assert "missing-table" in output
    assert run(tmp_path, "lock", "--check")[0] == 0
    (tmp_path / "schemas.lock").write_text(LOCK)
    code, output = run(tmp_path, "lock", "--check")
    assert code == 1
    assert "raw.orders: not in the catalog, or no longer read" in output
    assert (tmp_path / "schemas.lock").read_text() == LOCK


def test_lineage_as_text_and_json(tmp_path: Path) -> None:
    write_project(tmp_path, FILES)
    code, output = run(tmp_path, "lineage", "top.total")
    assert code == 0
    assert output.splitlines() == [
        "top.total  decimal(24,2)",
        "└─ daily.total  decimal(24,2)",
        "   └─ orders_clean.amount  decimal(14,2)",
        "      └─ raw.orders.amount  decimal(12,2)",
        "The rows depend on: raw.customers.country, raw.customers.id, raw.orders.customer_id, raw.orders.id",
    ]
    assert "raw.orders.amount" in run(tmp_path, "lineage", "daily")[1]
    assert run(tmp_path, "lineage", "raw.orders.amount", "--downstream")[1].splitlines()[:2] == [
        "raw.orders.amount  decimal(12,2)",
        "└─ orders_clean.amount  decimal(14,2)",
    ]
    assert '"column": "amount"' in run(tmp_path, "lineage", "daily.total", "--output", "json")[1]


def test_run_refuses_a_broken_contract_before_it_touches_the_model(tmp_path: Path) -> None:
    write_project(
        tmp_path,
        {
            "mvbuild.yml": "name: shop\n",
            "seeds/rates.csv": "currency,rate\nEUR,1\n",
            "models/m.sql": "SELECT currency, rate FROM {{ ref('rates') }}\n",
            "models/m.yml": "models: [{name: m, config: {contract: enforced}, columns: [{name: currency, data_type: string}]}]\n",
        },
    )
    seed, model = api.run(tmp_path).results
    assert (seed.status, model.status, [d.code for d in model.diagnostics]) == ("success", "error", ["broken-contract"])
    graph = api.compile(tmp_path)
    assert [n.name for n in api.catalog_of(graph).list_names(graph.project.target.namespace)] == ["rates"]
