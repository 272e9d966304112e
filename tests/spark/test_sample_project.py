"""The sample project under `refresh_policy: incremental`: after an update of one customer no MV is computed in full.

Its staging view takes the newest row of each customer, joins follow, then aggregates, and MVs over these."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mvbuild import api
from mvbuild.incremental.strategies import FULL
from spark.projects import Project, messages
from spark.shop import MakeProject

pytestmark = pytest.mark.proof

SAMPLE = Path(__file__).parents[2] / "sample_project"
MARTS = (
    "customer_lifetime_value",
    "daily_revenue",
    "monthly_summary",
    "order_facts",
    "product_ranking",
    "product_sales",
    "return_rates",
)
CHANGES = (
    "UPDATE lake.raw.customers SET country_code = 'FR' WHERE customer_id = 1003",
    "INSERT INTO lake.raw.customers SELECT customer_id, full_name, email, 'IT', signed_up_on, updated_at + INTERVAL 2 DAYS "
    "FROM lake.raw.customers WHERE customer_id = 1001",
    "DELETE FROM lake.raw.customers WHERE customer_id = 1005",
)


def sample(make: MakeProject, setting: str) -> Project:
    config = (SAMPLE / "mvbuild.yml").read_text()
    settings = f"  +refresh_policy: incremental\n  +auxiliary_views: {setting}\n"
    made = make({"mvbuild.yml": config.replace("\nmodels:\n", f"\nmodels:\n{settings}", 1)})
    for folder in ("models", "macros", "seeds", "tests"):
        shutil.copytree(SAMPLE / folder, made.root / folder)
    return made


@pytest.mark.parametrize("setting", ["auto", "always"])
def test_after_an_update_of_one_customer_no_mart_is_full(project: MakeProject, setting: str) -> None:
    made = sample(project, setting)
    first = made.run()
    assert first.ok, messages(first)
    for change in CHANGES:
        made.sql(change)
        result = made.run(*MARTS)
        assert result.ok, messages(result)
        found = {one.node.rpartition(".")[2]: (one.details.get("strategy"), one.details.get("reason")) for one in result.results}
        assert found.keys() >= set(MARTS), found
        assert not [name for name, (strategy, _) in found.items() if strategy == FULL], (change, found)
    checked = {one.node.rpartition(".")[2]: one.status for one in api.verify(made.root, spark=made.spark).results}
    assert checked == dict.fromkeys(MARTS, "same")
