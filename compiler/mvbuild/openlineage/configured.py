"""environment, files -> whether OpenLineage events are wanted. Imports nothing: most runs want none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

_FILE = "openlineage.yml"


def is_configured(env: Mapping[str, str]) -> bool:
    """Whether openlineage-python has been configured, by a file or by variables, where it looks for them itself."""
    if env.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    if env.get("OPENLINEAGE_URL") or env.get("OPENLINEAGE_CONFIG") or any(name.startswith("OPENLINEAGE__TRANSPORT") for name in env):
        return True
    with suppress(OSError, RuntimeError):
        return Path(_FILE).is_file() or (Path.home() / ".openlineage" / _FILE).is_file()
    return False


def is_installed() -> bool:
    """Whether there is openlineage-python."""
    with suppress(ImportError, ValueError):
        return find_spec("openlineage.client") is not None
    return False
