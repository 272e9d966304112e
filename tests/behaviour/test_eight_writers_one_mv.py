"""Eight processes swap one MV's pointer while another reads: no swap is lost, no reader sees half a file."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from behaviour.swaps import SWAPS, chain, race
from behaviour.world import embedded, warehouse

pytestmark = pytest.mark.proof


@pytest.mark.parametrize("kind", ["sqlite", "file system"])
def test_a_thousand_swaps(tmp_path: Path, kind: str) -> None:
    made = embedded(tmp_path) if kind == "sqlite" else warehouse(tmp_path)
    outcome = race(made, tmp_path, kind, swaps=SWAPS)
    assert outcome.errors == []
    assert outcome.uuids == {outcome.uuid}
    assert outcome.reads > 0
    # Every writer counts its own swaps in a property; the sum shows that none was lost.
    assert outcome.counted == SWAPS
    log = chain(made)
    assert len(log) == len(set(log)) == SWAPS + 1
    for earlier, later in pairwise(log):
        raw = json.loads(Path(later.removeprefix("file:")).read_text(encoding="utf-8"))
        assert raw["metadata-log"][-1]["metadata-file"] == earlier
    made.close()
