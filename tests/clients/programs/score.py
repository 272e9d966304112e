"""dbt-score: the quality of metadata."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

root = Path(sys.argv[1])
command = ["dbt-score", "lint", "--manifest", root / "target" / "manifest.json", "--format", "json"]
done = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
found = json.loads(done.stdout)
models = found["evaluables"]
assert len(models) >= 12, (done.returncode, done.stderr)
print(f"{len(models)} models, seeds and sources scored, project score {found['project']['score']:.1f}")
