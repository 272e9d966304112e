"""environment -> the warm engines of this user: what commands left running for the next one, and its end."""

from __future__ import annotations

import os

from mvbuild import adapters
from mvbuild.adapters.spark.warm.engines import WarmEngine


def warm_engines() -> list[WarmEngine]:
    """Those of this machine, of all projects."""
    return adapters.warm_engines(os.environ)


def stop_warm_engines(*, force: bool = False) -> tuple[list[WarmEngine], list[WarmEngine]]:
    """End those that no command uses, with `force` all of them: what has ended, and what will end when its command does."""
    return adapters.stop_warm_engines(os.environ, force=force)
