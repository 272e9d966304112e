"""settings + environment -> how long an engine is kept after a command; None: it is not kept.

MVBUILD_KEEP_WARM is about the machine and takes precedence over the project. In CI, where nothing may be left behind, it must be set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvbuild.adapters.spark.launch import LOCAL
from mvbuild.ports.engine import EngineError
from mvbuild.project.setting_values import duration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from mvbuild.project.loaded import SparkSettings

_NO = ("0", "no", "n", "off", "false", "f")


def kept(spark: SparkSettings, env: Mapping[str, str]) -> timedelta | None:
    """Raises EngineError if the variable is not a duration."""
    if spark.remote is not None or not LOCAL.match(spark.config.get("spark.master", spark.master)):
        return None
    asked = env.get("MVBUILD_KEEP_WARM", "").strip()
    if not asked:
        return None if env.get("CI", "").strip().lower() not in ("", *_NO) else spark.keep_warm
    if asked.lower() in _NO:
        return None
    found = duration(asked)
    if not found:
        raise EngineError("command-line", f"MVBUILD_KEEP_WARM must be a duration like 15m, or off, and not '{asked}'.")
    return found
