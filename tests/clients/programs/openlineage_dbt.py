"""openlineage-dbt, which makes events from the artifacts of a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

root, out = Path(sys.argv[1]), Path(sys.argv[3])
log = out / "events.json"
(out / "openlineage.yml").write_text(f"transport: {{type: file, log_file_path: {log}, append: true}}\n")
environment = os.environ | {"OPENLINEAGE_CONFIG": str(out / "openlineage.yml")}
command = ["dbt-ol", "send-events", "--project-dir", root, "--profiles-dir", root]
subprocess.run(command, check=True, env=environment, cwd=root)
events = [json.loads(line) for line in log.read_text().splitlines()]
kinds = {kind: sum(event["eventType"] == kind for event in events) for kind in ("START", "COMPLETE", "FAIL")}
assert kinds["FAIL"] == 0, kinds
assert kinds["START"] == kinds["COMPLETE"] > 18, kinds
outputs = {output["name"] for event in events for output in event["outputs"]}
assert len(outputs) >= 11, outputs
print(f"{kinds['COMPLETE']} jobs completed, {len(outputs)} datasets written")
