"""dbt-bouncer: rules for manifest, catalog and run results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

root, out = Path(sys.argv[1]), Path(sys.argv[3])
(out / "dbt-bouncer.yml").write_text(
    f"""dbt_artifacts_dir: {root / "target"}
manifest_checks:
  - name: check_model_description_populated
  - name: check_model_names
    model_name_pattern: ^[a-z_]+$
catalog_checks:
  - name: check_columns_are_documented_in_public_models
run_results_checks:
  - name: check_run_results_max_execution_time
    max_execution_time_seconds: 600
"""
)
done = subprocess.run(["dbt-bouncer", "--config-file", out / "dbt-bouncer.yml"], capture_output=True, text=True, check=False)
said = (done.stdout + done.stderr).strip().splitlines()
total = next((line for line in said if "SUCCESS=" in line), said[-1] if said else "")
assert done.returncode == 0, said
print(total.split("Done.")[-1].strip())
