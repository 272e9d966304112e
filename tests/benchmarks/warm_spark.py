"""a directory -> the one Spark of a benchmark, started as mvbuild starts its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "compiler")]

from mvbuild.adapters.spark import start_engine  # noqa: E402
from mvbuild.project.loaded import SparkSettings, Target  # noqa: E402
from spark import quick  # noqa: E402
from spark.projects import properties  # noqa: E402


@contextmanager
def warm_spark(directory: Path, *, memory: str = "4g", cores: int = 2, small: bool = False) -> Iterator[Any]:
    """A session with mvbuild's settings, whose own catalog is not used: projects come with theirs (`session_on`). `small`: for small
    tables."""
    directory.mkdir(parents=True, exist_ok=True)
    target = Target(
        name="bench",
        catalog_name="other",
        catalog=properties(directory / "other"),
        namespace=("main",),
        spark=SparkSettings(master=f"local[{cores}]", config={"spark.driver.memory": memory, **(quick.JVM if small else {})}),
        threads=1,
        embedded=True,
    )
    engine = start_engine(target, log_file=directory / "spark.log", env=os.environ, spark=None)
    try:
        yield engine.session  # type: ignore[attr-defined]
    finally:
        engine.close()
