"""mvbuild-core and the hooks against pyproject.toml: the same code, and the same requirements without Spark."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

if sys.version_info < (3, 11):
    import tomli as tomllib
else:
    import tomllib

ROOT = Path(__file__).parents[2]
NOT_OF_CORE = ("dev", "openlineage", "airflow", "dagster")
"""Extras for work on mvbuild, and for runs."""
OF_HOOKS = ("click", "jinja2", "pyyaml", "sqlglot")
"""What `compile` and `lint` import; tests/unit/test_startup.py proves it."""


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]  # type: ignore[no-any-return]


def test_core_requires_the_same_without_spark() -> None:
    whole, core = project(ROOT), project(ROOT / "core")
    assert core["dependencies"] == [one for one in whole["dependencies"] if not one.startswith("pyspark")]
    assert len(core["dependencies"]) == len(whole["dependencies"]) - 1
    extras = {name: of for name, of in whole["optional-dependencies"].items() if name not in NOT_OF_CORE}
    assert core["optional-dependencies"] == extras
    assert (core["scripts"], core["requires-python"]) == (whole["scripts"], whole["requires-python"])


def test_hooks_require_what_they_import_and_nothing_else() -> None:
    required = [one for one in project(ROOT)["dependencies"] if one.startswith(OF_HOOKS)]
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")):
        no_deps, *packages = hook["additional_dependencies"]
        assert no_deps == "--no-deps"
        # Jinja itself requires markupsafe.
        assert sorted(one for one in packages if not one.startswith("markupsafe")) == sorted(required), hook["id"]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The files of both wheels."""
    found = {}
    for name, folder in {"whole": ROOT, "core": ROOT / "core"}.items():
        target = tmp_path_factory.mktemp(name)
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
        done = subprocess.run(build, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        (wheel,) = target.glob("*.whl")
        found[name] = {one for one in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in one}
    return found


def test_both_wheels_have_the_same_files(wheels: dict[str, set[str]]) -> None:
    assert wheels["core"] == wheels["whole"]
    assert "mvbuild/cli/main.py" in wheels["core"]
