"""mvbuild's own operator for Airflow: one task for the project, with one Spark; events for what was refreshed; a failing test fails it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

root, out = Path(sys.argv[1]), Path(sys.argv[3])
os.environ |= {
    "AIRFLOW_HOME": str(out / "airflow"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
    "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "300",
    "AIRFLOW__CORE__DAGS_FOLDER": str(out / "dags"),
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{out}/airflow.db",
}
(out / "dags").mkdir(exist_ok=True)
(out / "dags" / "shop.py").write_text(
    f"""
from datetime import datetime

from airflow.sdk import DAG

from mvbuild.airflow import MvbuildOperator

with DAG("shop", start_date=datetime(2026, 1, 1), schedule=None) as dag:
    MvbuildOperator(task_id="refresh", project_dir={str(root)!r})
"""
)
sys.path.insert(0, str(out / "dags"))
from airflow.utils.db import initdb  # noqa: E402

initdb()
subprocess.run([sys.executable, "-m", "airflow", "dags", "reserialize"], check=True)
from shop import dag  # noqa: E402


def execute() -> tuple[str, dict[str, str]]:
    run = dag.test()
    (task,) = run.get_task_instances()
    found = task.xcom_pull(task_ids="refresh") if str(task.state) == "success" else None
    return str(task.state), (found or {}).get("nodes", {})


state, nodes = execute()
assert state == "success", state
assert set(nodes.values()) == {"success"}, nodes
assert len(nodes) == 18
state, nodes = execute()
assert set(nodes.values()) == {"reused"}, nodes
(root / "tests" / "deliberate.sql").write_text("select * from {{ ref('return_rates') }}\n")
state, _ = execute()
assert state == "failed", state
print("one task refreshed 18 nodes; again: all were fresh; with a failing test the task failed")
