"""Two runs of one project at the same time."""

from __future__ import annotations

import subprocess

import pytest

from spark.conftest import Lake
from spark.projects import ENVIRONMENT, Project, command_line, order
from spark.shop import DAILY, FILES, MORE, MakeProject, shop

pytestmark = pytest.mark.proof

MODEL = "models/marts/revenue_daily.sql"
SEEDS = {
    "seeds/regions.csv": "country,region\nDE,west\nFR,west\nIT,south\n",
    "seeds/more.csv": "id\n" + "\n".join(map(str, range(2000))) + "\n",
    "models/marts/by_region.sql": "SELECT region, sum(orders) AS orders FROM {{ ref('revenue_daily') }} JOIN regions USING (country) GROUP BY region\n",
    "models/marts/sampled.sql": "SELECT count(*) AS c FROM {{ ref('more') }}\n",
}


def two_at_once(of: Project) -> None:
    runs = [
        subprocess.Popen(command_line(of.root, "run"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
        for _ in range(2)
    ]
    outputs = [run.communicate(timeout=300)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], "\n\n".join(outputs)
    assert "Traceback" not in "".join(outputs)


def assert_right(of: Project) -> None:
    assert of.only_reused()
    of.assert_tidy()
    assert of.bag("SELECT * FROM lake.mart.revenue_daily__storage") == of.bag(DAILY)
    assert of.bag("SELECT * FROM lake.main.regions") == of.bag("SELECT * FROM VALUES ('DE', 'west'), ('FR', 'west'), ('IT', 'south')")
    assert of.sql("SELECT count(*) AS c FROM lake.main.more")[0].c == 2000
    assert of.sql("SELECT c FROM lake.mart.sampled__storage")[0].c == 2000


def test_first_build_and_a_change_with_two_runs_at_once(project: MakeProject, lake: Lake) -> None:
    made = shop(project, {**MORE, **SEEDS}).over(lake.remote)
    two_at_once(made)
    assert_right(made)
    version = made.view_version("mart.revenue_daily")
    made.append("raw.orders", order(4, 2, "2026-02-01", "7.00"))
    made.write({"seeds/more.csv": "id\n" + "\n".join(map(str, range(1, 2001))) + "\n"})
    two_at_once(made)
    assert_right(made)
    assert made.view_version("mart.revenue_daily") == version
    # Another layout of a storage table, which goes through scratch tables, and new rows for its reader.
    made.append("raw.orders", order(5, 2, "2026-03-01", "7.00"))
    made.write({MODEL: FILES[MODEL].replace("count(*) AS orders", "count(*) AS orders, max(o.amount) AS most")})
    two_at_once(made)
    assert made.view_version("mart.revenue_daily") == version + 1
    made.write({MODEL: FILES[MODEL]})
    assert made.run().ok
    assert_right(made)
