"""argv of mvbuild -> the modules that it imports, in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMPILER = Path(__file__).resolve().parents[2] / "compiler"
WORLD = ("pyspark", "pyiceberg", "pyarrow", "sqlalchemy", "deltalake")
RUNNER = """
import sys
from mvbuild.cli.main import main
code = None
try:
    main()
except SystemExit as exc:
    code = exc.code
sys.stdout.flush()
print("modules:", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""


def imported(*arguments: str) -> set[str]:
    """Top-level modules that a command has imported when it ends; it must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(COMPILER)}
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, *arguments], capture_output=True, text=True, check=False, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return set(done.stderr.splitlines()[-1].split()[1:])
