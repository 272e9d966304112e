"""catalog_view, dialects -> the text of the catalog's view, and when it should change."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.freshness.pending import representation_problems, same_definition, view_text_differs
from mvbuild.graph.model import ModelNode
from mvbuild.graph.view_text import DEFINITION
from mvbuild.ports.commits import TableLayout, ViewCommit
from mvbuild.ports.states import ViewState
from mvbuild.refresh.views import next_version
from unit.worlds import Shop, name, shop

SQL = "SELECT id FROM raw.orders\n"
STORAGE = "{{ config(catalog_view='storage') }}\n"


def files(config: str = "", sql: str = SQL) -> dict[str, str]:
    return {"mvbuild.yml": "name: shop\n", "models/m.sql": config + sql}


@pytest.fixture
def of(tmp_path: Path) -> Shop:
    made = shop(tmp_path, files(STORAGE))
    made.run()
    return made


def view(of: Shop) -> ViewState:
    found = of.catalog.load([name("main.m")])[name("main.m")]
    assert isinstance(found, ViewState)
    return found


def differs(of: Shop) -> bool:
    world = of.world()
    return view_text_differs(world, world.graph.model("model.shop.m"), view(of))


def same(of: Shop) -> bool:
    world = of.world()
    return same_definition(world, world.graph.model("model.shop.m"), view(of))


def commit_next(of: Shop) -> ViewCommit:
    world = of.world()
    node: ModelNode = world.graph.model("model.shop.m")
    change = next_version(world, node, view(of), view(of).schema)
    of.catalog.commit([change])
    return change


def test_the_view_selects_the_storage_and_keeps_its_definition(of: Shop) -> None:
    assert view(of).representations == {"spark": "SELECT id FROM lake.main.m__storage"}
    assert view(of).properties[DEFINITION] == "SELECT id FROM lake.raw.orders"
    assert same(of)
    assert not differs(of)
    assert of.statuses() == {"m": "reused"}


def test_an_edited_definition_is_noticed(of: Shop) -> None:
    of.write(files(STORAGE, "SELECT id FROM raw.customers\n"))
    assert not same(of)
    assert of.statuses() == {"m": "success"}
    assert view(of).properties[DEFINITION] == "SELECT id FROM lake.raw.customers"


def test_the_setting_alone_changes_the_text_and_not_the_definition(of: Shop) -> None:
    of.write(files())
    assert same(of)
    assert differs(of)
    assert commit_next(of).remove_properties == (DEFINITION,)
    assert view(of).representations == {"spark": "SELECT id FROM lake.raw.orders"}
    assert DEFINITION not in view(of).properties
    assert not differs(of)
    of.write(files(STORAGE))
    assert same(of)
    assert differs(of)
    commit_next(of)
    assert not differs(of)


def test_a_text_of_somebody_else_is_not_excused_by_the_property(of: Shop) -> None:
    world = of.world()
    change = next_version(world, world.graph.model("model.shop.m"), view(of), view(of).schema)
    foreign = ViewCommit(
        identifier=change.identifier,
        expect_metadata_location=change.expect_metadata_location,
        version_id=change.version_id,
        schema=change.schema,
        representations={"spark": "SELECT 1 AS id"},
        default_namespace=change.default_namespace,
        properties={},
    )
    of.catalog.commit([foreign])
    assert view(of).properties[DEFINITION]
    assert not same(of)


def test_a_further_dialect_alone_changes_the_text(tmp_path: Path) -> None:
    of = shop(tmp_path, files())
    of.run()
    of.write(files("{{ config(dialects=['trino']) }}\n"))
    assert same(of)
    assert differs(of)
    commit_next(of)
    assert view(of).representations == {
        "spark": "SELECT id FROM lake.raw.orders",
        "trino": 'SELECT CAST("id" AS BIGINT) AS "id" FROM (SELECT "id" FROM "raw"."orders") AS "mv"("id")',
    }
    assert not differs(of)
    of.write(files())
    assert differs(of)


TYPED = "{{ config(dialects=['trino']) }}\nSELECT\n  sum(id) AS id,\n  max(at) AS at\nFROM raw.typed\n"


@pytest.mark.parametrize(("type_", "expected"), [("long", []), ("double", ["models/m.sql:3:3"])])
def test_the_types_of_the_catalog_decide_what_is_published(type_: str, expected: list[str], tmp_path: Path) -> None:
    of = shop(tmp_path, files(sql=TYPED))
    fields = [{"id": 1, "name": "id", "type": type_, "required": False}, {"id": 2, "name": "at", "type": "date", "required": False}]
    layout = TableLayout(schema={"type": "struct", "schema-id": 0, "fields": fields})
    of.catalog.ensure_namespace(("raw",))
    of.catalog.create_table(name("raw.typed"), layout, {})
    world = of.world()
    assert [str(d.span) for found in representation_problems(world, world.graph.models).values() for d in found] == expected


def test_a_missing_table_stops_nothing_but_what_reads_it(tmp_path: Path) -> None:
    world = shop(tmp_path, files(sql=TYPED)).world()
    assert representation_problems(world, world.graph.models) == {}
