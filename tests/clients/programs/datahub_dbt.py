"""DataHub's source `dbt`, into a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

root, out = Path(sys.argv[1]), Path(sys.argv[3])
target, found = root / "target", out / "datahub.json"
recipe = {
    "source": {
        "type": "dbt",
        "config": {
            "manifest_path": str(target / "manifest.json"),
            "catalog_path": str(target / "catalog.json"),
            "run_results_paths": [str(target / "run_results.json")],
            "target_platform": "spark",
            "write_semantics": "OVERRIDE",
        },
    },
    "sink": {"type": "file", "config": {"filename": str(found)}},
}
(out / "recipe.json").write_text(json.dumps(recipe))
subprocess.run(["datahub", "ingest", "-c", out / "recipe.json"], check=True)
records = json.loads(found.read_text())
datasets = {r["entityUrn"] for r in records if r.get("entityType") == "dataset" and "dataPlatform:dbt" in r["entityUrn"]}
assertions = {r["entityUrn"] for r in records if r.get("entityType") == "assertion"}
ran = {r["entityUrn"] for r in records if r.get("aspectName") == "assertionRunEvent"}
assert len(datasets) == 19, len(datasets)
assert len(assertions) >= 56, len(assertions)
assert ran
print(f"{len(datasets)} datasets, {len(assertions)} assertions, {len(ran)} with results")
