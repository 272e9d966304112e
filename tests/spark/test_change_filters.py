"""Conditions of a query on a table whose files were written again: only rows that fulfil them are compared, and no row is missed."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from mvbuild.adapters.iceberg import net_rows
from mvbuild.incremental import choose
from mvbuild.incremental.strategies import STRATEGIES
from spark.projects import Project, messages, of
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

QUERIES: Mapping[str, str] = {
    "late": "SELECT id, v, v * 2 AS twice FROM raw.sales WHERE v > 10 AND v <> 15",
    "pairs": "SELECT a.id, b.id AS other FROM raw.sales a JOIN raw.sales b ON a.k = b.k WHERE a.v > 10 AND b.`a name` = 'x'",
    "each": "SELECT id FROM raw.sales WHERE v > 10 UNION ALL SELECT k FROM raw.sales",
    "unlike": "SELECT k, count(*) AS n, max(v) AS most FROM raw.sales WHERE NOT (v <=> 3) GROUP BY k",
}
WANTED: Mapping[str, str] = {
    "late": "v > 10 AND v <> 15",
    "pairs": "v > 10 OR a name = 'x'",
    "each": "",
    "unlike": "NOT (v IS NOT DISTINCT FROM 3)",
}
CHANGES = (
    "UPDATE lake.raw.sales SET v = 23 - v",
    "UPDATE lake.raw.sales SET v = NULL WHERE k = 1",
    "UPDATE lake.raw.sales SET v = 12, `a name` = if(k = 1, 'x', 'y') WHERE v IS NULL OR k = 3",
    "UPDATE lake.raw.sales SET `a name` = NULL WHERE id < 4",
    "UPDATE lake.raw.sales SET v = 3 WHERE k = 2",
    "DELETE FROM lake.raw.sales WHERE id % 5 = 0",
)


@pytest.fixture(scope="module")
def house(project: MakeProject) -> Project:
    models = {f"models/{name}.sql": sql + "\n" for name, sql in QUERIES.items()}
    made = project({"mvbuild.yml": "name: cow\nmodels: {+refresh_policy: incremental, +namespace: mart}\n", **models})
    made.sql("CREATE NAMESPACE lake.raw")
    made.sql("CREATE TABLE lake.raw.sales (id INT, k INT, v INT, `a name` STRING) USING iceberg")
    made.sql(
        "INSERT INTO lake.raw.sales SELECT /*+ COALESCE(1) */ id, id % 4, id * 5 % 23, CASE WHEN id % 3 = 0 THEN 'x' END "
        "FROM (SELECT explode(sequence(1, 40)) AS id)"
    )
    result = made.run()
    assert result.ok, messages(result)
    return made


@pytest.mark.parametrize("by", ["Spark", "mvbuild"])
@pytest.mark.parametrize("change", CHANGES)
def test_rows_come_into_a_condition_and_leave_it(house: Project, monkeypatch: pytest.MonkeyPatch, change: str, by: str) -> None:
    if by == "Spark":
        monkeypatch.setattr(net_rows, "MAX_VALUES", 0)
    monkeypatch.setattr(choose, "STRATEGIES", {name: STRATEGIES[name] for name in ("bag", "affected-keys")})
    house.sql(change)
    result = house.run()
    assert result.ok, messages(result)
    for name, sql in QUERIES.items():
        assert house.bag(f"SELECT * FROM lake.mart.{name}__storage") == house.bag(sql.replace("raw.", "lake.raw.")), name
        found = of(result, name)
        if found.status != "reused":
            assert found.details["strategy"] in ("bag", "affected-keys"), name
            assert any(re.search(r"_net_\d+ AS", s) for s in _statements(house, name)) == (by == "Spark"), name


def test_only_rows_that_fulfil_them_are_compared(house: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "STRATEGIES", {name: STRATEGIES[name] for name in ("bag", "affected-keys")})
    monkeypatch.setattr(net_rows, "MAX_VALUES", 0)
    house.sql("UPDATE lake.raw.sales SET v = v + 1")
    result = house.run()
    assert result.ok, messages(result)
    for name, wanted in WANTED.items():
        compared = next(s for s in _statements(house, name) if re.search(r"_net_\d+ AS", s))
        assert set(re.findall(r"\) WHERE (.*?)\)(?= UNION ALL|\) DIST)", compared.replace("`", ""))) == ({wanted} if wanted else set()), (
            name
        )


def test_a_table_that_has_the_same_rows_says_nothing_of_another(house: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """`full-diff` reads no change at all, so what it reads gives no information either."""
    monkeypatch.setattr(choose, "STRATEGIES", {"full-diff": STRATEGIES["full-diff"]})
    house.sql("CREATE TABLE lake.raw.others (k INT, x STRING) USING iceberg")
    house.sql("INSERT INTO lake.raw.others VALUES (1, 'a'), (2, 'b')")
    sql = "SELECT s.id, o.x FROM raw.sales s JOIN raw.others o ON s.k = o.k"
    house.write(
        {"models/both.sql": sql + "\n", "models/reader.sql": "SELECT id FROM mart.both\n"}
    )  # for whom only the difference is written
    assert house.run("+reader").ok
    house.sql("UPDATE lake.raw.sales SET v = coalesce(v, 0) + 1")
    house.sql("INSERT INTO lake.raw.others VALUES (3, 'c')")
    result = house.run("both")
    assert result.ok, messages(result)
    assert of(result, "both").details["strategy"] == "full-diff"
    assert house.bag("SELECT * FROM lake.mart.both__storage") == house.bag(sql.replace("raw.", "lake.raw."))
    house.sql("UPDATE lake.raw.sales SET v = v + 1")
    assert house.run("both").ok
    assert house.bag("SELECT * FROM lake.mart.both__storage") == house.bag(sql.replace("raw.", "lake.raw."))


def _statements(house: Project, name: str) -> list[str]:
    (file,) = (house.root / "target" / "run").rglob(f"{name}.sql")
    return [" ".join(s.split()) for s in file.read_text(encoding="utf-8").split("\n;\n")]
