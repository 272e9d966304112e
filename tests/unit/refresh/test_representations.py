"""SQL that another engine added to a view: kept while the query is the same, removed with another query."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.freshness.rules import judge
from mvbuild.ports.commits import ViewCommit
from mvbuild.ports.states import ViewState
from unit.worlds import PROJECT, Shop, append, name, shop

THEIRS = "SELECT id FROM orders_clean -- theirs"
FILE = "name: shop\nmodels: {+storage: {format: metadata-file}}\n"


@pytest.fixture(params=["table-properties", "metadata-file"])
def built(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    made = shop(tmp_path, {**PROJECT, "mvbuild.yml": FILE} if request.param == "metadata-file" else PROJECT)
    assert made.run().ok
    return made


def view(of: Shop, model: str = "daily") -> ViewState:
    found = of.catalog.load([name(f"main.{model}")])[name(f"main.{model}")]
    assert isinstance(found, ViewState)
    return found


def add(of: Shop, dialect: str = "trino", sql: str = THEIRS, model: str = "daily") -> ViewState:
    """Another engine replaces the version, with its own SQL beside Spark's and its own defaults."""
    before = view(of, model)
    commit = ViewCommit(
        identifier=before.identifier,
        expect_metadata_location=before.metadata_location,
        version_id=before.last_version_id + 1,
        schema=before.schema,
        representations={**before.representations, dialect: sql},
        default_namespace=("theirs",),
        default_catalog="iceberg",
        properties={},
    )
    of.catalog.commit([commit])
    return view(of, model)


def configure(of: Shop, yaml: str) -> None:
    of.write({"models/daily.yml": f"models:\n  - name: daily\n{yaml}"})


def publish_in_trino(of: Shop) -> None:
    """The model, and the view that it reads."""
    configure(of, "    config: {dialects: [trino]}\n")
    of.write({"models/orders_clean.yml": "models:\n  - name: orders_clean\n    config: {dialects: [trino]}\n"})


def kept(of: Shop) -> bool:
    found = view(of)
    assert (found.representations.get("trino") == THEIRS) == ((found.default_catalog, found.default_namespace) == ("iceberg", ("theirs",)))
    return found.representations.get("trino") == THEIRS


def test_a_refresh_keeps_it_and_needs_no_further_version(built: Shop) -> None:
    added = add(built)
    assert judge(built.world())["model.shop.daily"].has("view-version-differs")
    assert built.run().ok
    assert kept(built)
    assert view(built).version_id == added.version_id
    assert set(built.actions().values()) == {"reuse"}
    append(built.catalog, "raw.orders")
    assert built.run().ok
    assert kept(built)
    assert view(built).version_id == added.version_id


@pytest.mark.parametrize(
    ("yaml", "versions"),
    [
        ("    description: Of a day.\n", 0),
        ("    config: {when_stale: serve}\n", 0),
        ("    config: {table_properties: {a: b}}\n", 0),
        ("    config: {sort_by: [id]}\n", 0),
        ("    columns: [{name: id, description: Its number.}]\n", 1),
    ],
)
def test_an_alteration_keeps_it(built: Shop, yaml: str, versions: int) -> None:
    added = add(built)
    built.run()
    configure(built, yaml)
    assert built.actions("daily") == {"daily": "alter"}
    assert built.statuses("daily") == {"daily": "reused"}
    assert kept(built)
    assert view(built).version_id == added.version_id + versions
    assert built.actions("daily") == {"daily": "reuse"}


def test_another_format_of_the_text_keeps_it(built: Shop) -> None:
    added = add(built)
    built.run()
    built.write({"models/daily.sql": "SELECT\n  id\nFROM {{ ref('orders_clean') }}\n"})
    assert built.actions("daily") == {"daily": "alter"}
    assert built.run("daily").ok
    assert kept(built)
    assert view(built).version_id == added.version_id + 1
    assert built.actions("daily") == {"daily": "reuse"}


def test_another_query_does_not(built: Shop) -> None:
    add(built)
    built.run()
    built.write({"models/daily.sql": "SELECT id FROM {{ ref('orders_clean') }} WHERE id > 7\n"})
    assert built.run("daily").ok
    assert not kept(built)
    assert set(view(built).representations) == {"spark"}


def test_other_columns_of_the_same_query_do_not(built: Shop) -> None:
    add(built)
    built.run()
    built.engine.schema = {**built.engine.schema, "fields": [{"id": 1, "name": "id", "type": "string", "required": False}]}
    append(built.catalog, "raw.orders")
    assert built.run("daily", full_refresh=True).ok
    assert not kept(built)


def test_a_query_that_another_engine_replaced_takes_its_translation_with_it(built: Shop) -> None:
    before = add(built)
    commit = ViewCommit(
        identifier=before.identifier,
        expect_metadata_location=before.metadata_location,
        version_id=before.last_version_id + 1,
        schema=before.schema,
        representations={"spark": "SELECT 7L AS id", "trino": "SELECT BIGINT '7' AS id"},
        default_namespace=("theirs",),
        properties={},
    )
    built.catalog.commit([commit])
    assert built.run("daily").ok
    assert set(view(built).representations) == {"spark"}
    assert "lake.main.orders_clean" in view(built).representations["spark"]


def test_a_view_of_the_storage_is_another_text(tmp_path: Path) -> None:
    made = shop(tmp_path, PROJECT)
    made.run()
    add(made)
    made.run()
    configure(made, "    config: {catalog_view: storage}\n")
    assert made.run().ok
    assert not kept(made)


def test_the_sql_that_mvbuild_wrote_itself_goes_with_its_setting(built: Shop) -> None:
    publish_in_trino(built)
    assert built.run().ok
    assert view(built).properties["mvbuild.dialects"] == "trino"
    add(built, "dremio", "SELECT id FROM theirs")
    assert built.run().ok
    assert set(view(built).representations) == {"spark", "trino", "dremio"}
    configure(built, "    config: {}\n")
    assert built.run().ok
    assert set(view(built).representations) == {"spark", "dremio"}
    assert "mvbuild.dialects" not in view(built).properties
    assert set(built.actions().values()) == {"reuse"}


def test_a_dialect_that_mvbuild_is_to_write_is_its_own(built: Shop) -> None:
    add(built)
    built.run()
    publish_in_trino(built)
    assert built.run().ok
    assert view(built).representations["trino"] not in ("", THEIRS)
    assert set(built.actions().values()) == {"reuse"}


def test_a_view_of_a_project_keeps_it_too(built: Shop) -> None:
    added = add(built, model="orders_clean")
    assert built.run().ok
    assert view(built, "orders_clean") == added
    built.write({"models/orders_clean.sql": PROJECT["models/orders_clean.sql"].replace("id > 0", "id > 1")})
    assert built.run().ok
    assert set(view(built, "orders_clean").representations) == {"spark"}


@pytest.mark.parametrize(
    ("theirs", "is_kept"), [("SELECT id FROM main.daily", True), ("SELECT id FROM daily", False), ("TABLE daily", False)]
)
def test_sql_that_names_what_is_renamed_follows_or_goes(built: Shop, theirs: str, is_kept: bool) -> None:
    add(built, sql=theirs, model="monthly")
    built.run()
    (built.root / "models/daily.sql").rename(built.root / "models/daily2.sql")
    built.write(
        {
            "models/daily2.sql": "{{ config(previous_name='daily') }}\n" + PROJECT["models/daily.sql"],
            "models/monthly.sql": PROJECT["models/monthly.sql"].replace("daily", "daily2"),
        }
    )
    assert built.run().ok
    assert view(built, "monthly").representations.get("trino") == ("SELECT id FROM main.daily2" if is_kept else None)
