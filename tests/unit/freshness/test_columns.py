"""Schema changes of base tables that make no snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mvbuild.freshness.rules import judge
from unit.worlds import PROJECT, SCHEMA, Shop, append, shop

Fields = list[dict[str, Any]]
TWO = {**SCHEMA, "fields": [*SCHEMA["fields"], {"id": 2, "name": "customer", "type": "long", "required": False}]}  # type: ignore[misc]


@pytest.fixture(params=["table-properties", "metadata-file"])
def built(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    files = {**PROJECT, "mvbuild.yml": f"name: shop\nmodels: {{+storage: {{format: {request.param}}}}}\n"}
    made = shop(tmp_path, files)
    evolve(made, lambda _: list(TWO["fields"]))  # type: ignore[arg-type]
    append(made.catalog, "raw.orders")
    made.run()
    assert codes(made) == []
    return made


def evolve(of: Shop, change: Callable[[Fields], Fields], table: str = "raw.orders") -> None:
    """Another schema becomes current, and nothing else happens: as ALTER TABLE in Spark."""
    state = of.table(table)
    files = of.catalog._files._contents  # type: ignore[attr-defined]
    content, changed_ms = files[state.metadata_location]
    raw = json.loads(content)
    current = next(s for s in raw["schemas"] if s["schema-id"] == raw["current-schema-id"])
    number = max(s["schema-id"] for s in raw["schemas"]) + 1
    raw["schemas"].append({**current, "schema-id": number, "fields": change([dict(f) for f in current["fields"]])})
    raw |= {"current-schema-id": number, "last-column-id": 9}
    files[state.metadata_location] = (json.dumps(raw).encode(), changed_ms)


def codes(of: Shop, model: str = "daily") -> list[str]:
    return [r.code for r in judge(of.world())[f"model.shop.{model}"].reasons]


def swapped(fields: Fields) -> Fields:
    return [{**fields[0], "name": "customer"}, {**fields[1], "name": "id"}]


def retyped(fields: Fields) -> Fields:
    return [{**fields[0], "type": "string"}, fields[1]]


def dropped(fields: Fields) -> Fields:
    return fields[:1]


def added(fields: Fields) -> Fields:
    return [*fields, {"id": 3, "name": "more", "type": "long", "required": False}]


def described(fields: Fields) -> Fields:
    return [{**f, "doc": "What it is."} for f in fields]


@pytest.mark.parametrize("change", [swapped, retyped])
def test_what_a_name_means_has_changed(built: Shop, change: Callable[[Fields], Fields]) -> None:
    evolve(built, change)
    assert codes(built) == ["base-table-schema-changed"]
    assert codes(built, "monthly") == ["upstream-stale"]
    assert built.statuses("daily") == {"daily": "success"}
    assert codes(built) == []


@pytest.mark.parametrize("change", [added, described, dropped])
def test_what_changes_no_name_is_no_change(built: Shop, change: Callable[[Fields], Fields]) -> None:
    evolve(built, change)
    assert codes(built) == []


def test_a_star_takes_new_columns(built: Shop) -> None:
    built.write({"models/daily.sql": "SELECT * FROM {{ ref('orders_clean') }}\n"})
    built.run()
    evolve(built, added)
    assert codes(built) == ["base-table-schema-changed"]


def test_a_dropped_column_that_is_read(built: Shop) -> None:
    built.write({"models/daily.sql": "SELECT id FROM raw.orders WHERE Customer > 1\n"})
    built.run()
    evolve(built, dropped)
    assert codes(built) == ["base-table-schema-changed"]


def test_each_base_table_has_one_note(built: Shop) -> None:
    storage = built.world().observed.table(built.world().graph.model("model.shop.daily").storage)
    assert storage is not None
    noted = [k for k in storage.properties if k.startswith("mvbuild.base.schema.")]
    assert len(noted) == 1
