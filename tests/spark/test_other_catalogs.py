"""Two catalogs with tables of one name: views that Spark wrote in a session of the other one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from mvbuild import api
from spark.projects import Project, bag, messages, of, orders

pytestmark = pytest.mark.proof

MakeProject = Callable[[Mapping[str, str]], Project]

FILES = {
    "mvbuild.yml": "name: shop\n",
    "models/s.yml": (
        "sources:\n  - name: crm\n    catalog: other\n"
        "    properties: {type: sql, uri: \"{{ env_var('OTHER_URI') }}\", warehouse: \"{{ env_var('OTHER_WAREHOUSE') }}\"}\n"
        "    tables: [{name: customers}]\n"
    ),
    "models/by_namespace.sql": "SELECT order_id FROM raw.by_namespace\n",
    "models/by_catalog.sql": "SELECT order_id FROM raw.by_catalog\n",
    "models/by_full_name.sql": "SELECT order_id FROM raw.by_full_name\n",
    "models/of_nowhere.sql": "SELECT order_id FROM raw.of_nowhere\n",
    "models/plain.sql": "SELECT order_id FROM raw.orders\n",
}


@pytest.fixture
def made(project: MakeProject, monkeypatch: pytest.MonkeyPatch) -> Project:
    built = project(FILES)
    uri, warehouse = f"jdbc:sqlite:{built.root}/other.db", f"file://{built.root}/other"
    monkeypatch.setenv("OTHER_URI", uri.replace("jdbc:sqlite:", "sqlite:///"))
    monkeypatch.setenv("OTHER_WAREHOUSE", warehouse)
    for name in ("other", "nowhere"):
        for key, value in {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "jdbc", ".uri": uri, ".warehouse": warehouse}.items():
            built.spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
        built.spark.conf.set(f"spark.sql.catalog.{name}.jdbc.schema-version", "V1")
    built.make("raw.orders", orders((1, 1, "2026-01-05", "10.00")))
    for name in ("other", "nowhere"):
        built.sql(f"CREATE NAMESPACE {name}.raw")
        built.sql(f"CREATE TABLE {name}.raw.orders (order_id BIGINT)")
    built.sql("INSERT INTO other.raw.orders VALUES (71), (72)")
    return built


def test_views_are_read_in_the_catalogs_that_they_were_written_in(made: Project) -> None:
    made.sql("USE other.raw")
    made.sql("CREATE VIEW lake.raw.by_namespace AS SELECT order_id FROM orders")
    made.sql("CREATE VIEW lake.raw.by_catalog AS SELECT order_id FROM raw.orders")
    made.sql("USE lake.raw")
    made.sql("CREATE VIEW lake.raw.by_full_name AS SELECT order_id FROM other.raw.orders")
    made.sql("USE nowhere.raw")
    made.sql("CREATE VIEW lake.raw.of_nowhere AS SELECT order_id FROM orders")
    made.sql("USE lake")
    result = made.run()
    assert [d.code for d in of(result, "of_nowhere").diagnostics] == ["unknown-catalog"], messages(result)
    for name in ("by_namespace", "by_catalog", "by_full_name"):
        assert made.bag(f"SELECT * FROM lake.main.{name}__storage") == bag([(71,), (72,)]), name
    assert made.bag("SELECT * FROM lake.main.plain__storage") == bag([(1,)])
    made.sql("INSERT INTO other.raw.orders VALUES (73)")
    assert made.codes("by_namespace") == ["base-table-changed"]
    assert made.run("of_nowhere").ok is False
    (made.root / "models/of_nowhere.sql").unlink()
    assert made.refreshed() == {"by_namespace", "by_catalog", "by_full_name"}
    assert made.bag("SELECT * FROM lake.main.by_namespace__storage") == bag([(71,), (72,), (73,)])
    assert api.verify(made.root, select=["by_namespace", "by_catalog", "by_full_name"], spark=made.spark).ok
    made.assert_tidy()
