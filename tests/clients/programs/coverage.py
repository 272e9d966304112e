"""dbt-coverage: which columns are documented and tested."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

root = Path(sys.argv[1])
totals = []
for kind in ("doc", "test"):
    command = ["dbt-coverage", "compute", kind, "--project-dir", root, "--run-artifacts-dir", root / "target"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    total = next(line for line in said.splitlines() if line.startswith("Total"))
    covered, of = re.findall(r"(\d+)/(\d+)", total)[0]
    totals.append(f"{kind} {covered} of {of} columns")
print("; ".join(totals))
