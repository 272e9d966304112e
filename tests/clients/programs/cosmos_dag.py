"""A DAG of Cosmos: each model is a task that calls mvbuild, with its tests after it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

root, executable, out = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
os.environ |= {
    "AIRFLOW_HOME": str(out / "airflow"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
    "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "300",
    # Otherwise Airflow reads only files with the word "airflow".
    "AIRFLOW__CORE__DAG_DISCOVERY_SAFE_MODE": "false",
    "AIRFLOW__CORE__DAGS_FOLDER": str(out / "dags"),
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{out}/airflow.db",
    "AIRFLOW__COSMOS__ENABLE_TELEMETRY": "false",
    "AIRFLOW__COSMOS__PROPAGATE_LOGS": "true",
}
(out / "dags").mkdir(exist_ok=True)
subprocess.run([executable, "--quiet", "parse", "--project-dir", root], check=True)
(out / "dags" / "harbor_market.py").write_text(
    f"""
from datetime import datetime
from pathlib import Path

from cosmos import DbtDag, ExecutionConfig, ProfileConfig, ProjectConfig, RenderConfig
from cosmos.constants import InvocationMode, LoadMode

root = Path({str(root)!r})
dag = DbtDag(
    dag_id="harbor_market",
    start_date=datetime(2026, 1, 1),
    schedule=None,
    project_config=ProjectConfig(dbt_project_path=root, manifest_path=root / "target" / "manifest.json", project_name="harbor_market"),
    profile_config=ProfileConfig(profile_name="harbor_market", target_name="dev", profiles_yml_filepath=root / "profiles.yml"),
    execution_config=ExecutionConfig(dbt_executable_path={executable!r}, invocation_mode=InvocationMode.SUBPROCESS),
    render_config=RenderConfig(load_method=LoadMode.DBT_MANIFEST, should_detach_multiple_parents_tests=True),
    operator_args={{"install_deps": False}},
)
"""
)
sys.path.insert(0, str(out / "dags"))
from airflow.utils.db import initdb  # noqa: E402

initdb()
subprocess.run([sys.executable, "-m", "airflow", "dags", "reserialize"], check=True)
from harbor_market import dag  # noqa: E402

run = dag.test()
states: dict[str, int] = {}
for task in run.get_task_instances():
    states[str(task.state)] = states.get(str(task.state), 0) + 1
assert set(states) == {"success"}, states
print(f"{states['success']} tasks succeeded: for the seeds and models, their tests, and each test of several")
