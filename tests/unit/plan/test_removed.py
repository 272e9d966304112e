"""What removed models left in the catalog -> listed, and dropped only while nothing reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.freshness.observe import observe
from mvbuild.lifecycle.drop import drop_all
from mvbuild.lifecycle.removed_models import find_named, find_removed
from mvbuild.plan.removed import Removed
from mvbuild.ports.commits import ViewCommit
from mvbuild.ports.states import ViewState
from unit.worlds import PROJECT, SCHEMA, Shop, append, compiled, name, shop, unmarked

FILE = {"mvbuild.yml": "name: shop\nmodels:\n  +storage: {format: metadata-file}\n"}


@pytest.fixture(params=["table-properties", "metadata-file"])
def built(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    made = shop(tmp_path, {**PROJECT, **(FILE if request.param == "metadata-file" else {})})
    made.run()
    return made


def delete(shop: Shop, *models: str) -> None:
    for model in models:
        (shop.root / f"models/{model}.sql").unlink()


def gone(shop: Shop) -> tuple[Removed, ...]:
    return find_removed(observe(compiled(shop.root), shop.catalog, at_ms=0), shop.catalog)


def foreign_view(shop: Shop, text: str, sql: str, dialect: str = "spark") -> None:
    identifier = name(text)
    shop.catalog.ensure_namespace(identifier.namespace)
    commit = ViewCommit(
        identifier=identifier,
        expect_metadata_location=None,
        version_id=1,
        schema=SCHEMA,
        representations={dialect: sql},
        default_namespace=identifier.namespace,
        properties={},
    )
    shop.catalog.commit([commit])


def names(shop: Shop) -> set[str]:
    return {i.dotted for ns in ("main", "raw", "bi") for i in shop.catalog.list_names((ns,))}


def test_nothing_is_removed_from_a_whole_project(built: Shop) -> None:
    assert gone(built) == ()


TARGETS = """name: shop
target: production
targets:
  production: {namespace: mart}
  dev: {namespace: dev_ada}
"""


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "written before targets were marked"])
def test_what_another_target_built_is_not_removed(built: Shop, marked: bool) -> None:
    of_files = FILE["mvbuild.yml"].removeprefix("name: shop\n") if "metadata-file" in (built.root / "mvbuild.yml").read_text() else ""
    models = {"orders_clean": "raw.orders", "daily": "{{ ref('orders_clean') }}", "monthly": "{{ ref('daily') }}"}
    built.write({f"models/{model}.sql": f"SELECT id FROM {read}\n" for model, read in models.items()})
    for target in ("production", "dev"):
        built.write({"mvbuild.yml": TARGETS.replace("target: production", f"target: {target}") + of_files})
        assert built.run().ok
    if not marked:
        for found in built.catalog.load([name(f"{space}.{model}") for space in ("mart", "dev_ada") for model in models]).values():
            assert isinstance(found, ViewState)
            unmarked(built, found)
    assert {item.identifier.namespace for item in gone(built)} <= {("main",)}
    delete(built, "monthly")
    (item,) = (item for item in gone(built) if item.identifier.namespace != ("main",))
    assert item.identifier.dotted == "dev_ada.monthly"
    drop_all(built.catalog, [item])
    with pytest.raises(ProjectError):
        find_named(built.world(), built.catalog, "monthly")
    assert find_named(built.world(), built.catalog, "mart.monthly").identifier.dotted == "mart.monthly"


def test_what_is_left_in_a_namespace_without_models_is_still_listed(built: Shop) -> None:
    built.write({"models/monthly.sql": "{{ config(namespace='old') }} SELECT id FROM main.orders_clean\n"})
    built.run()
    delete(built, "monthly")
    assert "old.monthly" in [item.identifier.dotted for item in gone(built)]


def test_a_deleted_model_is_dropped_with_its_storage_and_nothing_else(built: Shop) -> None:
    before = names(built)
    delete(built, "monthly")
    (item,) = gone(built)
    assert item.model == "model.shop.monthly"
    dropped, diagnostics = drop_all(built.catalog, [item])
    assert diagnostics == ()
    assert {i.dotted for d in dropped for i in d.names} == before - names(built)
    assert {n.split(".")[1] for n in before - names(built)} <= {"monthly", "monthly__storage"}
    assert built.catalog.files.below("memory:/main/monthly") == ()
    assert {r.status for r in built.run().results} == {"reused"}


def test_a_name_that_changes_only_in_case_leaves_another_mv_where_the_catalog_distinguishes_them(built: Shop) -> None:
    before = names(built)
    built.write({"models/monthly.sql": f"{{{{ config(alias='Monthly') }}}}\n{PROJECT['models/monthly.sql']}"})
    built.run()
    assert [item.identifier.dotted for item in gone(built)] == ["main.monthly"]
    item = find_named(observe(compiled(built.root), built.catalog, at_ms=0), built.catalog, "main.monthly")
    assert item.identifier == name("main.monthly")
    dropped, problems = drop_all(built.catalog, gone(built))
    assert not problems
    assert len(dropped) == 1
    assert names(built) == {one.replace("monthly", "Monthly") for one in before}
    assert built.statuses()["monthly"] == "reused"


def test_what_a_model_reads_stays_and_its_readers_are_named(built: Shop) -> None:
    delete(built, "orders_clean")
    built.write({"models/daily.sql": "SELECT id FROM main.orders_clean\n"})
    (item,) = gone(built)
    assert [str(d.identifier) for d in item.kept_by] == ["lake.main.daily"]
    dropped, (told,) = drop_all(built.catalog, [item])
    assert dropped == ()
    assert told.code == "has-dependents"
    assert "lake.main.daily" in told.message


def test_an_mv_that_became_a_seed_can_be_dropped_although_models_read_the_seed(built: Shop) -> None:
    """Otherwise there is no way out: the seed cannot be loaded where the MV is, and those models wait for the seed."""
    delete(built, "orders_clean")
    built.write({"seeds/orders_clean.csv": "id,customer_id\n1,1\n"})
    (item,) = gone(built)
    assert item.kept_by == ()
    drop_all(built.catalog, [item])
    assert built.statuses()["orders_clean"] == "success"


def test_an_mv_that_became_a_seed_is_kept_for_others_that_read_it(built: Shop) -> None:
    delete(built, "orders_clean")
    built.write({"seeds/orders_clean.csv": "id,customer_id\n1,1\n"})
    foreign_view(built, "bi.report", "SELECT id FROM main.orders_clean")
    (item,) = gone(built)
    assert [str(d.identifier) for d in item.kept_by] == ["lake.bi.report"]


def test_removed_ones_that_read_each_other_go_together_readers_first(built: Shop) -> None:
    delete(built, "daily", "monthly", "orders_clean")
    items = gone(built)
    assert [i.identifier.name for i in items] == ["monthly", "daily", "orders_clean"]
    dropped, diagnostics = drop_all(built.catalog, items)
    assert diagnostics == ()
    assert len(dropped) == 3
    assert names(built) == {"raw.orders", "raw.customers"}


@pytest.mark.parametrize(
    ("sql", "dialect", "why"),
    [
        ("SELECT id FROM main.monthly", "spark", ""),
        ("SELECT id FROM `lake`.main.MONTHLY", "spark", ""),
        ('SELECT id FROM "lake"."main"."monthly" !!', "trino", "cannot be parsed"),
    ],
)
def test_a_view_of_somebody_else_keeps_it_and_what_it_reads(built: Shop, sql: str, dialect: str, why: str) -> None:
    foreign_view(built, "bi.report", sql, dialect)
    delete(built, "daily", "monthly")
    built.write({"models/orders_clean.sql": "{{ config(materialized='view') }}\nSELECT id FROM raw.orders WHERE id > 0\n"})
    before = names(built)
    dropped, diagnostics = drop_all(built.catalog, gone(built))
    assert dropped == ()
    assert {d.code for d in diagnostics} == {"has-dependents"}
    assert any("lake.bi.report" in d.message and why in d.message for d in diagnostics)
    assert any("lake.main.monthly" in d.message for d in diagnostics)
    assert names(built) == before


def test_a_view_that_only_looks_alike_keeps_nothing(built: Shop) -> None:
    foreign_view(built, "bi.report", "SELECT 'monthly' AS id FROM bi.monthly")
    delete(built, "monthly")
    assert gone(built)[0].kept_by == ()


def test_a_reader_of_the_storage_table_counts(tmp_path: Path) -> None:
    made = shop(tmp_path)
    made.run()
    foreign_view(made, "bi.report", "SELECT id FROM main.monthly__storage")
    delete(made, "monthly")
    assert [str(d) for d in gone(made)[0].kept_by] == ["lake.bi.report"]


def test_a_moved_model_is_told_of_previous_name(built: Shop) -> None:
    built.write({"models/monthly.yml": "models:\n  - name: monthly\n    config: {alias: per_month}\n"})
    (item,) = gone(built)
    assert "another name" in item.note
    assert "previous_name: main.monthly" in item.help


def test_what_was_there_before_a_model_became_ephemeral(built: Shop) -> None:
    built.write({"models/orders_clean.sql": "{{ config(materialized='ephemeral') }}SELECT id FROM raw.orders\n"})
    (item,) = gone(built)
    assert (item.identifier, item.note, item.help) == (name("main.orders_clean"), "model.shop.orders_clean is ephemeral now", "")


def test_the_storage_of_a_model_that_became_a_view(tmp_path: Path) -> None:
    made = shop(tmp_path)
    made.run()
    made.write({"models/monthly.sql": "{{ config(materialized='view') }}\nSELECT id FROM daily JOIN raw.customers USING (id)\n"})
    made.run()
    (item,) = gone(made)
    assert item.names == (name("main.monthly__storage"),)
    assert item.kept_by == ()
    drop_all(made.catalog, [item])
    assert "main.monthly" in names(made)
    assert "main.monthly__storage" not in names(made)


def test_a_project_does_not_touch_another_one(built: Shop) -> None:
    built.write({"mvbuild.yml": (built.root / "mvbuild.yml").read_text().replace("name: shop", "name: other")})
    delete(built, "monthly")
    assert gone(built) == ()


def test_a_refresh_meanwhile_is_not_lost(tmp_path: Path) -> None:
    made = shop(tmp_path)
    made.run()
    (made.root / "models/monthly.sql").rename(tmp_path / "kept.sql")
    items = gone(made)
    append(made.catalog, "main.monthly__storage")
    dropped, (told,) = drop_all(made.catalog, items)
    assert dropped == ()
    assert told.code == "commit-conflict"
    assert "main.monthly" in names(made)


def test_drop_finds_by_model_and_by_catalog_name(built: Shop) -> None:
    world = observe(compiled(built.root), built.catalog, at_ms=0)
    assert find_named(world, built.catalog, "monthly").identifier == name("main.monthly")
    assert find_named(world, built.catalog, "main.monthly").identifier == name("main.monthly")
    assert [str(d) for d in find_named(world, built.catalog, "daily").kept_by] == ["lake.main.monthly"]


def test_drop_refuses_what_mvbuild_did_not_write(built: Shop) -> None:
    foreign_view(built, "bi.report", "SELECT 1 AS id")
    world = observe(compiled(built.root), built.catalog, at_ms=0)
    for text in ("bi.report", "raw.orders", "nothing"):
        with pytest.raises(ProjectError) as caught:
            find_named(world, built.catalog, text)
        assert caught.value.diagnostics[0].code == "unknown-name"


def test_a_table_registered_a_second_time_keeps_its_files(tmp_path: Path) -> None:
    made = shop(tmp_path)
    made.run()
    storage = made.table("main.monthly__storage")
    made.catalog._pointers._found["main", "copy"] = (storage.metadata_location, "TABLE")  # type: ignore[attr-defined]
    delete(made, "monthly")
    drop_all(made.catalog, gone(made))
    assert made.table("main.copy").uuid == storage.uuid
    assert isinstance(made.catalog.load([name("main.daily")])[name("main.daily")], ViewState)
