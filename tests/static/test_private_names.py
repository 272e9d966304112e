"""What mvbuild uses of PyIceberg's private names is in one module, and exists in the release that this module names."""

from __future__ import annotations

import ast
import re
from importlib.metadata import version
from inspect import signature
from pathlib import Path

import pyiceberg.catalog.rest
import pyiceberg.catalog.rest.response
import pyiceberg.expressions.visitors
import pyiceberg.io.pyarrow
import pyiceberg.manifest
import pyiceberg.table
import pyiceberg.typedef
from pyiceberg.catalog.hive import HiveCatalog

from mvbuild.adapters.iceberg.private_pyiceberg import RELEASE

ROOT = Path(__file__).parents[2]
CODE = ROOT / "compiler/mvbuild"
SHIM = "adapters/iceberg/private_pyiceberg.py"


def test_the_release_is_the_installed_and_the_required_one() -> None:
    assert version("pyiceberg").startswith(f"{RELEASE}.")
    required = re.search(r'"pyiceberg\[.*\]==(.*)\.\*"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert required is not None
    assert required[1] == RELEASE


def test_no_other_module_imports_a_private_name() -> None:
    found = {
        str(path.relative_to(CODE))
        for path in CODE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "pyiceberg"
        if "._" in (node.module or "") or any(alias.name.startswith("_") for alias in node.names)
    }
    assert found == {SHIM}


def test_no_other_adapter_of_iceberg_uses_a_private_attribute_of_another_object() -> None:
    """Its own (`self._x`) are fine, and those of a copy of itself for a branch (`found._x`)."""
    found = {
        f"{path.name}: {ast.unparse(node)}"
        for path in (CODE / "adapters/iceberg").glob("*.py")
        if path.name != Path(SHIM).name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr)
        if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "found"))
    }
    assert found == set()


def test_the_names_are_there() -> None:
    assert list(signature(pyiceberg.manifest._inherit_from_manifest).parameters) == ["entry", "manifest"]
    assert list(signature(pyiceberg.io.pyarrow._read_deletes).parameters) == ["io", "data_file"]
    files = signature(pyiceberg.io.pyarrow._dataframe_to_data_files).parameters
    assert list(files)[:4] == ["table_metadata", "df", "io", "write_uuid"]
    assert list(signature(pyiceberg.expressions.visitors._InclusiveMetricsEvaluator).parameters)[:2] == ["schema", "expr"]
    assert len(signature(pyiceberg.catalog.rest.response._handle_non_200_response).parameters) == 2
    assert {"_split_identifier_for_path", "_refresh_token"} <= set(dir(pyiceberg.catalog.rest.RestCatalog))
    assert {"_session", "_supported_endpoints", "_namespace_separator"} <= set(pyiceberg.catalog.rest.RestCatalog.__annotations__)
    assert list(signature(HiveCatalog._create_hive_client).parameters) == ["properties"]
    assert "_updates" in pyiceberg.table.Transaction.__annotations__
    assert "_data" in pyiceberg.typedef.Record.__slots__
