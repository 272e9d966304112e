"""MVs that are refreshed from auxiliary views, on real tables: their rows are those of the full query, whatever happens to the auxiliary views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from mvbuild import api
from mvbuild.cli.explain import explanation_text
from mvbuild.ports.catalog import CommitConflict
from mvbuild.refresh import publish
from mvbuild.refresh.result import NodeResult
from spark.projects import Project, messages
from spark.refresh_histories import as_if_large
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

NEWEST = "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY at DESC) AS age FROM raw.customers) WHERE age = 1"
QUERIES: Mapping[str, str] = {
    "ratio": "SELECT k, sum(v) / count(*) AS mean FROM raw.sales GROUP BY k",
    "means": "SELECT k, avg(v) AS mean FROM raw.sales GROUP BY k HAVING sum(v) > 20",
    "total": "SELECT sum(v) AS total FROM raw.sales",
    "by_country": f"SELECT country, sum(id) / count(*) AS mean FROM ({NEWEST}) GROUP BY country",
    "best": "SELECT k, sum(v) AS total FROM raw.sales GROUP BY k ORDER BY total DESC, k LIMIT 2",
    "best_written": "SELECT s.k, sum(v) AS total FROM raw.sales s GROUP BY s.k ORDER BY SUM(v) DESC, S.k LIMIT 2",
    "running": "SELECT k, total, sum(total) OVER (ORDER BY k) AS so_far FROM (SELECT k, sum(v) AS total FROM raw.sales GROUP BY k) AS q",
    "values": "SELECT count(DISTINCT k) AS ks, count(*) AS n, count(v) AS vs, sum(v) AS s, avg(v) AS a, avg(id) AS i, min(v) AS lo FROM raw.sales LIMIT 9",
    "no_values": "SELECT count(DISTINCT v) AS vs, sum(v) AS s, count(*) AS n, max(k) AS k FROM raw.sales WHERE id > 100",
    "first_rows": "SELECT s.id, c.country FROM raw.sales s JOIN raw.customers c ON s.k = c.id ORDER BY s.id + 1 DESC, c.country LIMIT 3",
    "last_of": "SELECT k, grouping(k) AS g, sum(v) AS t FROM raw.sales GROUP BY ROLLUP (k) ORDER BY CASE WHEN grouping(k) = 0 THEN k END, t LIMIT 3",
    "by_hidden": "SELECT k FROM raw.sales GROUP BY k ORDER BY count(*) DESC, sum(id), k LIMIT 3",
    "newest": "SELECT s.id, s.v FROM raw.sales s JOIN raw.customers c ON s.k = c.id ORDER BY c.at DESC, s.k, id, v, c.country LIMIT 5",
    "above": "SELECT k, sum(v) AS t FROM raw.sales GROUP BY k HAVING sum(v) > (SELECT max(at) FROM raw.customers) ORDER BY t, k LIMIT 2",
    "above_mean": "SELECT c.country, s.id FROM raw.sales s JOIN raw.customers c ON s.k = c.id WHERE c.country <> 'US' "
    "AND s.v > (SELECT avg(i.v) FROM raw.sales i WHERE i.k = c.id)",
    "silent": "SELECT id, at FROM raw.customers c WHERE country <> 'US' AND NOT EXISTS (SELECT 1 FROM raw.sales s WHERE s.k = c.id AND v > 5)",
    "totals": "SELECT c.country, t.total FROM raw.customers c LEFT JOIN (SELECT k, sum(v) AS total FROM raw.sales GROUP BY k) t ON t.k = c.id "
    "WHERE c.at = 1",
    "sales_each": "SELECT n, count(*) AS customers FROM (SELECT c.id, count(s.id) AS n FROM raw.customers c LEFT JOIN raw.sales s ON s.k = c.id "
    "GROUP BY c.id) GROUP BY n",
    "of_all": "SELECT count(*) AS n, sum(v) / count(*) AS mean, sum(v) AS s FROM raw.sales",
    "large_of": "SELECT c.id, (SELECT count(*) FROM raw.sales s WHERE s.k = c.id AND s.v > 20) AS n, "
    "(SELECT sum(s.v) / count(*) FROM raw.sales s WHERE s.k = c.id) AS mean FROM raw.customers c WHERE c.country <> 'US'",
    "by_struct": "SELECT struct(k, v) AS g, sum(v) / count(*) AS mean FROM raw.sales GROUP BY struct(k, v)",
    "in_file": "SELECT k, sum(v) / count(*) AS mean FROM raw.sales GROUP BY k",
}
FILES = {
    "mvbuild.yml": "name: aux\nmodels: {+refresh_policy: incremental, +auxiliary_views: always, +namespace: mart}\n",
    "models/all.yml": "models:\n  - {name: in_file, config: {storage: {format: metadata-file}}}\n",
    **{f"models/{name}.sql": sql + "\n" for name, sql in QUERIES.items()},
}


@pytest.fixture(scope="module", autouse=True)
def large() -> Iterator[None]:
    """Views are followed as if computing them completely were expensive."""
    with as_if_large():
        yield


@pytest.fixture(scope="module")
def house(project: MakeProject) -> Project:
    made = project(FILES)
    made.sql("CREATE NAMESPACE IF NOT EXISTS lake.raw")
    made.sql(
        "CREATE TABLE lake.raw.sales (id BIGINT, k INT, v DECIMAL(10, 2)) USING iceberg "
        "TBLPROPERTIES ('write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read')"
    )
    made.sql("CREATE TABLE lake.raw.customers (id INT, at INT, country STRING) USING iceberg")
    made.sql("INSERT INTO lake.raw.sales SELECT id, CAST(id % 5 AS INT), CAST(id AS DECIMAL(10, 2)) FROM range(1, 41)")
    made.sql("INSERT INTO lake.raw.customers VALUES (0, 1, 'DE'), (1, 1, 'FR'), (1, 2, 'IT'), (2, 1, 'DE'), (3, 1, 'FR'), (4, 1, 'US')")
    return made


def refresh(house: Project, *select: str, **options: Any) -> dict[str, NodeResult]:
    """Of the selected MVs, or of all."""
    result = house.run(*select, **options)
    assert result.ok, messages(result)
    check(house, select or QUERIES)
    return {one.node.rpartition(".")[2]: one for one in result.results}


def check(house: Project, names: Iterable[str]) -> None:
    for name in names:
        full = QUERIES[name].replace("raw.", "lake.raw.")
        place = f"lake.mart.{name}__storage" if name != "in_file" else None
        if place is not None:
            assert house.bag(f"SELECT * FROM {place}") == house.bag(full), name
    house.assert_tidy()


def strategies(found: Mapping[str, NodeResult]) -> dict[str, tuple[str, str | None]]:
    return {name: (one.details.get("strategy"), one.details.get("reason")) for name, one in found.items()}


def test_every_kind_of_change(house: Project) -> None:
    # Spark confirms each division of a query before its first rows are computed from it.
    assert {name for name, one in refresh(house).items() if not one.details.get("auxiliary_views")} == set()
    for statements in (
        ("INSERT INTO lake.raw.sales VALUES (100, 1, 7.00), (101, 9, 1.00)",),
        (
            "DELETE FROM lake.raw.sales WHERE id IN (3, 101) OR k = 4",
            "UPDATE lake.raw.sales SET v = v + 1, k = 2 WHERE id = 6",
            "UPDATE lake.raw.sales SET v = NULL WHERE k = 3",
        ),
        ("INSERT INTO lake.raw.customers VALUES (1, 3, 'DE')", "DELETE FROM lake.raw.customers WHERE id = 2"),
    ):
        for statement in statements:
            house.sql(statement)
        found = strategies(refresh(house))
        assert not [name for name, (strategy, _) in found.items() if strategy == "full"], found


def test_a_second_run_has_nothing_to_do(house: Project) -> None:
    assert house.only_reused()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE lake.raw.sales SET v = v + 1 WHERE id = 7",
        "INSERT INTO lake.raw.sales VALUES (400, 8, 90.00), (401, NULL, 90.00)",
        "DELETE FROM lake.raw.sales WHERE id > 399",
    ],
)
def test_a_query_that_picks_from_its_view_is_computed_with_it(house: Project, change: str) -> None:
    house.sql(change)
    names = ("ratio", "means", "total")
    found = refresh(house, *names)
    for name in names:
        statements = found[name].sql.split("\n;\n")
        assert sum(statement.startswith("SELECT") for statement in statements) == 1, statements


def test_groups_below_others_follow_the_pairs_of_a_left_join(house: Project) -> None:
    """The last sale of a customer goes, and the first one of another comes; then a customer without sales comes, and one goes."""
    for statements, expected in (
        (("DELETE FROM lake.raw.sales WHERE k = 2", "INSERT INTO lake.raw.sales VALUES (110, 3, 1.00), (111, 3, 1.00)"), ["merge"]),
        (
            ("INSERT INTO lake.raw.customers VALUES (70, 1, 'DE'), (3, 7, 'DE')", "INSERT INTO lake.raw.sales VALUES (112, 3, 1.00)"),
            ["merge"],
        ),
        (("DELETE FROM lake.raw.customers WHERE id = 70",), ["affected-keys"]),
    ):
        for statement in statements:
            house.sql(statement)
        found = refresh(house, "sales_each")["sales_each"].details
        assert [view["strategy"] for view in found["auxiliary_views"]] == expected


def views_of(house: Project, name: str) -> list[str]:
    return sorted(f"mart.{found[1]}" for found in house.catalog.list_tables("mart") if found[1].startswith(f"{name}__auxiliary_"))


def test_views_are_named_after_their_mv(house: Project) -> None:
    assert views_of(house, "ratio") == ["mart.ratio__auxiliary_1"]
    assert views_of(house, "by_country") == ["mart.by_country__auxiliary_1", "mart.by_country__auxiliary_2"]
    # The customers, their sales, and the groups that they need.
    assert [len(views_of(house, name)) for name in ("above_mean", "silent", "totals")] == [3, 2, 2]


def rolled_back(house: Project, view: str) -> None:
    oldest = min(house.table(view).metadata.snapshots, key=lambda s: s.sequence_number).snapshot_id
    house.sql(f"CALL lake.system.set_current_snapshot('{view}', {oldest})")


BY_HAND = {
    "dropped": lambda house, view: house.sql(f"DROP TABLE lake.{view}"),
    "emptied": lambda house, view: house.sql(f"DELETE FROM lake.{view}"),
    "doubled": lambda house, view: house.sql(f"INSERT INTO lake.{view} SELECT * FROM lake.{view}"),
    "rolled back": rolled_back,
    "expired": lambda house, view: house.sql(
        f"CALL lake.system.expire_snapshots(table => '{view}', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
    ),
    "compacted": lambda house, view: house.sql(
        f"CALL lake.system.rewrite_data_files(table => '{view}', options => map('rewrite-all', 'true'))"
    ),
    "purged": lambda house, view: house.sql(f"DROP TABLE lake.{view} PURGE"),
    "given a column of another name": lambda house, view: house.sql(
        f"ALTER TABLE lake.{view} RENAME COLUMN {house.table(view).schema().fields[-1].name} TO by_others"
    ),
    "given another column": lambda house, view: house.sql(f"ALTER TABLE lake.{view} ADD COLUMN by_others INT"),
}


NAMES = ("by_country", "ratio", "in_file")


@pytest.mark.parametrize("what", [list(BY_HAND)[at : at + 3] for at in range(0, 9, 3)], ids=", ".join)
def test_a_view_that_others_changed_is_only_slower(house: Project, what: list[str]) -> None:
    for name, how in zip(NAMES, what, strict=True):
        for view in views_of(house, name):
            BY_HAND[how](house, view)
    house.sql("INSERT INTO lake.raw.sales VALUES (200, 2, 3.00)")
    house.sql("DELETE FROM lake.raw.sales WHERE id = (SELECT min(id) FROM lake.raw.sales)")
    house.sql("INSERT INTO lake.raw.customers SELECT 2, max(at) + 1, 'FR' FROM lake.raw.customers")
    refresh(house, *NAMES)


def test_the_next_refresh_follows_changes_again(house: Project) -> None:
    house.sql("UPDATE lake.raw.sales SET v = v + 1 WHERE id = 200")
    found = strategies(refresh(house))
    assert not [name for name, (strategy, _) in found.items() if strategy == "full"], found


def test_a_run_that_is_killed_between_the_two_commits(house: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The auxiliary views are ahead of their MVs, which name the earlier snapshots."""
    house.sql("INSERT INTO lake.raw.sales VALUES (300, 1, 2.00)")
    house.sql("DELETE FROM lake.raw.sales WHERE id = 13")
    house.sql("INSERT INTO lake.raw.customers VALUES (0, 9, 'US')")
    published = publish.publish_views

    def killed(*arguments: Any) -> None:
        published(*arguments)
        raise CommitConflict("killed")

    monkeypatch.setattr(publish, "publish_views", killed)
    names = (*NAMES, "means", "best", "running")
    assert not house.run(*names).ok
    monkeypatch.undo()
    house.sql("INSERT INTO lake.raw.sales VALUES (301, 4, 5.00)")
    found = strategies(refresh(house, *names))
    assert not [name for name, (strategy, _) in found.items() if strategy == "full"], found


def test_verify_agrees(house: Project) -> None:
    """Also for the MV in a metadata file, whose rows are in no table of the catalog."""
    found = {one.node.rpartition(".")[2]: one.status for one in api.verify(house.root, spark=house.spark).results}
    assert found == dict.fromkeys(QUERIES, "same")


def test_explain_and_plan_show_them(house: Project) -> None:
    house.sql("INSERT INTO lake.raw.customers VALUES (3, 10, 'US')")
    text = explanation_text(api.explain(api.compile(house.root), "by_country"))
    assert "lake.mart.by_country__auxiliary_1: affected-keys" in text or "lake.mart.by_country__auxiliary_1: no-change" in text, text
    refresh(house, "by_country")


def test_drop(house: Project) -> None:
    api.drop(house.root, "ratio")
    assert views_of(house, "ratio") == []
    refresh(house, "ratio")


def test_rows_that_cannot_be_compared_are_computed_from_views(project: MakeProject) -> None:
    query = "SELECT array(CAST(max(t) AS DOUBLE)) AS m FROM (SELECT k, sum(v) AS t FROM raw.sales GROUP BY k) AS q"
    made = project({"mvbuild.yml": FILES["mvbuild.yml"], "models/arrays.sql": query})
    made.sql("CREATE NAMESPACE IF NOT EXISTS lake.raw")
    made.sql(
        "CREATE TABLE lake.raw.sales (id BIGINT, k INT, v DECIMAL(10, 2)) USING iceberg TBLPROPERTIES ('write.delete.mode'='merge-on-read')"
    )
    made.sql("INSERT INTO lake.raw.sales SELECT id, CAST(id % 5 AS INT), CAST(id AS DECIMAL(10, 2)) FROM range(1, 41)")
    for change in (
        "INSERT INTO lake.raw.sales VALUES (50, 2, 5.00)",
        "DELETE FROM lake.raw.sales WHERE id = 40",
        "DELETE FROM lake.raw.sales WHERE id = 39",
    ):
        result = made.run()
        assert result.ok, messages(result)
        made.sql(change)
    (step,) = api.plan(made.root, spark=made.spark).steps
    assert step.choice is not None
    assert (step.choice.strategy, step.choice.code) == ("full", "uncomparable-column")
    result = made.run()
    assert result.ok, messages(result)
    assert [row["m"] for row in made.sql("SELECT m FROM lake.mart.arrays__storage")] == [[164.0]]


def test_a_view_that_the_mv_does_not_follow_is_refreshed_in_the_cheaper_way(project: MakeProject) -> None:
    """After a refresh without them, the MV is computed in full from its views: these need not be brought up to date by their change."""
    query = "SELECT k, sum(v) / count(*) AS r FROM raw.sales GROUP BY k"
    config = FILES["mvbuild.yml"].replace("+refresh_policy: incremental", "+refresh_policy: auto")
    made = project({"mvbuild.yml": config, "models/ratio.sql": query})
    made.sql("CREATE NAMESPACE IF NOT EXISTS lake.raw")
    made.sql("CREATE TABLE lake.raw.sales (id BIGINT, k INT, v DECIMAL(10, 2)) USING iceberg")
    made.sql("INSERT INTO lake.raw.sales SELECT id, CAST(id % 5 AS INT), CAST(id AS DECIMAL(10, 2)) FROM range(1, 41)")
    found = []
    for full_refresh in (False, False, True, False, False):
        result = made.run(full_refresh=full_refresh)
        assert result.ok, messages(result)
        details = result.results[0].details
        found.append((details["strategy"], [view["strategy"] for view in details.get("auxiliary_views") or ()]))
        assert made.bag("SELECT * FROM lake.mart.ratio__storage") == made.bag(query.replace("raw.", "lake.raw."))
        made.sql("INSERT INTO lake.raw.sales VALUES (100, 2, 5.00)")
    assert found == [("full", ["full"]), ("bag", ["merge"]), ("full", []), ("full", ["full"]), ("bag", ["merge"])]
