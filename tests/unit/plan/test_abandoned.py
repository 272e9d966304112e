"""Storage tables of MVs that never had a successful refresh: reported by plan, dropped by --prune and by drop."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mvbuild.api import sessions
from mvbuild.cli.main import group
from mvbuild.lifecycle.drop import drop_all
from mvbuild.lifecycle.removed_models import find_removed
from mvbuild.ports.commits import TableLayout
from unit.worlds import PROJECT, SCHEMA, Shop, base_table, name, shop

TESTED = {
    **PROJECT,
    "models/bad.sql": "SELECT id FROM raw.orders\n",
    "models/bad.yml": "models: [{name: bad, columns: [{name: id, data_tests: [unique]}]}]\n",
}


@pytest.fixture
def of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """The first refresh of `bad` fails its test."""
    made = shop(tmp_path, TESTED)
    made.engine.failures = {"count(*) AS copies": 2}
    assert made.statuses()["bad"] == "error"
    assert made.table("main.bad__storage").current_snapshot_id is None
    assert name("main.bad") not in made.catalog.load([name("main.bad")])
    monkeypatch.setattr(sessions, "open_catalog", lambda *_, **__: made.catalog)
    return made


def call(of: Shop, *arguments: str) -> Result:
    return CliRunner().invoke(group, [*arguments, "--project-dir", str(of.root)], standalone_mode=False)


def removed(of: Shop) -> list[str]:
    return [str(item.identifier) for item in find_removed(of.world(), of.catalog)]


def forget(of: Shop) -> None:
    for file in ("bad.sql", "bad.yml"):
        (of.root / "models" / file).unlink()


def there(of: Shop, text: str = "main.bad__storage") -> bool:
    return name(text) in of.catalog.load([name(text)])


def test_while_the_model_is_there_it_stays(of: Shop) -> None:
    assert removed(of) == []


@pytest.mark.parametrize("how", ["the model is gone", "it is a plain view now", "it is ephemeral now", "it stores elsewhere"])
def test_plan_and_prune(of: Shop, how: str) -> None:
    kinds = {"it is a plain view now": "materialized='view'", "it is ephemeral now": "materialized='ephemeral'"}
    forget(of)
    if how != "the model is gone":
        config = kinds.get(how, "storage_table='other'")
        of.write({"models/bad.sql": f"{{{{ config({config}) }}}}\nSELECT id FROM raw.orders\n"})
    assert removed(of) == ["lake.main.bad__storage"]
    assert "main.bad__storage" in call(of, "plan").stdout
    dropped, problems = drop_all(of.catalog, find_removed(of.world(), of.catalog))
    assert (len(dropped), problems) == (1, ())
    assert not there(of)
    assert there(of, "main.daily__storage")


@pytest.mark.parametrize("word", ["bad", "main.bad", "main.bad__storage"])
@pytest.mark.parametrize("gone", [False, True], ids=["of a model", "of a model that is gone"])
def test_drop(of: Shop, gone: bool, word: str) -> None:
    if gone:
        forget(of)
    done = call(of, "drop", word, "--yes")
    assert done.return_value == 0, done.stderr
    assert done.stdout.startswith("dropped lake.main.bad__storage (")
    assert not there(of)


def test_what_is_not_abandoned_is_left_alone(of: Shop) -> None:
    forget(of)
    state = of.table("main.bad__storage")
    catalog = of.catalog
    base_table(catalog, "main.foreign__storage")
    owner = next(key for key, value in state.properties.items() if value == "model.shop.bad")
    catalog.create_table(name("main.x__storage"), TableLayout(schema=SCHEMA), {owner: "model.another_project.x"})
    catalog.append_snapshot(name("main.bad__storage"), {"id": [1]}, branch="dev")
    assert removed(of) == []
    assert call(of, "drop", "main.foreign__storage", "--yes").return_value == 2
    assert call(of, "drop", "bad", "--yes").return_value == 2
