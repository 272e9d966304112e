"""`import mvbuild` -> the functions for notebooks, and nothing slow until one is used."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import mvbuild
from mvbuild import api
from unit.imports import COMPILER

SLOW = ("sqlglot", "jinja2", "yaml", "pyspark", "pyiceberg", "sqlalchemy", "pyarrow")


def test_the_functions_are_those_of_the_api() -> None:
    assert (mvbuild.read, mvbuild.sql, mvbuild.served) == (api.read, api.sql, api.served)
    assert {"read", "sql", "served"} <= set(dir(mvbuild))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = mvbuild.nothing


def test_importing_the_package_costs_nothing() -> None:
    text = f"import mvbuild, sys; mvbuild.__version__; sys.exit(bool(set({SLOW!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", text], check=False, env={**os.environ, "PYTHONPATH": str(COMPILER)})
    assert done.returncode == 0
