"""What mvbuild knows of Spark's functions is what Spark's registry says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.incremental import spark_registry
from spark.conftest import Lake
from spark.function_registry import module

pytestmark = pytest.mark.proof


def test_the_list_of_functions_is_that_of_spark(lake: Lake) -> None:
    """`python tests/spark/function_registry.py > compiler/mvbuild/incremental/spark_registry.py` writes it."""
    assert Path(spark_registry.__file__).read_text(encoding="utf-8") == module(lake.session)
