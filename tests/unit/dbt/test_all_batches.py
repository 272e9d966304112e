"""Every model of the tests that the import takes: dbt's batches against the query of the MV."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.dbt.batch_runs import play
from unit.dbt.incremental_cases import RUN_DAYS, taken_models
from unit.dbt.projects import taken

pytestmark = pytest.mark.proof
MODELS = taken_models()


@pytest.mark.parametrize("name", MODELS)
def test_the_mv_is_the_table_that_dbt_builds(tmp_path: Path, name: str) -> None:
    (model,) = taken(tmp_path, MODELS[name], vars=RUN_DAYS).incremental
    assert model.item.verdict == "changed", model.item.reasons
    found = play(model, 8)
    assert found.verdict in ("agrees", "agrees, noted"), (found.differs, found.reason)
    assert found.changed
