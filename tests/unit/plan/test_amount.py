from __future__ import annotations

from pathlib import Path

from mvbuild.plan.amount import bytes_of, read_by_mvs, read_by_plan, read_by_tests
from unit.worlds import PROJECT, Shop, base_table, name, shop

TESTED = "models:\n  - name: daily\n    columns:\n      - name: id\n        tests: [{relationships: {to: \"source('raw', 'rates')\", field: id}}]\n"
SOURCES = "sources:\n  - name: raw\n    tables: [{name: rates}]\n"


def grown(of: Shop, table: str, size: int | str) -> None:
    """One more snapshot, after which the files of the table have this size."""
    of.catalog.append_snapshot(name(table), {"id": [1]}, summary={"total-files-size": str(size)})


def read_by(of: Shop, *include: str, all_tests: bool = False) -> int | None:
    planned = of.plan(*include)
    return bytes_of(planned.world, read_by_plan(planned, all_tests=all_tests), planned.rows)


def test_each_table_below_the_steps_counts_once(tmp_path: Path) -> None:
    of = shop(tmp_path)
    grown(of, "raw.orders", 1000)
    grown(of, "raw.customers", 200)
    assert read_by(of) == 1200  # daily and monthly both read what is below them; the storages do not exist yet
    assert read_by(of, "+daily") == 1000


def test_a_table_that_no_step_reads_does_not_count(tmp_path: Path) -> None:
    of = shop(tmp_path)
    grown(of, "raw.orders", 1000)
    grown(of, "raw.customers", 200)
    assert of.run().ok
    grown(of, "raw.customers", 300)
    grown(of, "main.daily__storage", 7)
    grown(of, "main.monthly__storage", 5)
    assert read_by(of, "monthly") == 300 + 7 + 5  # `monthly` reads the storage of `daily`, and its own


def test_without_a_size_nothing_is_known(tmp_path: Path) -> None:
    of = shop(tmp_path)
    grown(of, "raw.orders", 1000)
    grown(of, "raw.customers", "")
    assert read_by(of) is None
    assert read_by(of, "+daily") == 1000


def test_a_seed_counts_by_its_values(tmp_path: Path) -> None:
    files = {**PROJECT, "models/monthly.sql": "SELECT id FROM {{ ref('rates') }}\n", "seeds/rates.csv": "id,rate\n1,2\n3,4\n5,6\n"}
    of = shop(tmp_path, files)
    grown(of, "raw.orders", 1000)
    assert read_by(of, "monthly", "rates") == 6 * 8


def test_what_data_tests_read_counts(tmp_path: Path) -> None:
    files = {**PROJECT, "models/all.yml": TESTED + SOURCES}
    of = shop(tmp_path, files)
    grown(of, "raw.orders", 1000)
    base_table(of.catalog, "raw.rates")
    grown(of, "raw.rates", 50)
    assert read_by(of, "+daily") == 1050
    world = of.world()
    assert bytes_of(world, read_by_tests(world.graph, world.graph.tests)) == 50  # its storage does not exist yet
    assert bytes_of(world, read_by_mvs(world.graph, [world.graph.model("model.shop.daily")])) == 1000
