"""What mvbuild knows of Spark's functions is what the registries of its versions say of them."""

from __future__ import annotations

import pytest

from spark.conftest import Lake
from spark.function_registry import MODULES, ROOT, kinds, minor, saved

pytestmark = pytest.mark.proof


def test_what_was_saved_is_what_this_spark_says(lake: Lake) -> None:
    """`python tests/spark/function_registry.py --ask` saves it."""
    assert kinds(lake.session) == saved()[minor(lake.session)]


@pytest.mark.parametrize("file", MODULES)
def test_the_modules_are_made_of_what_was_saved(file: str) -> None:
    """`python tests/spark/function_registry.py --write` writes them."""
    assert (ROOT / file).read_text(encoding="utf-8") == MODULES[file](saved())
