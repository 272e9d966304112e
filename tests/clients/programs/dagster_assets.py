"""mvbuild's own assets for Dagster: one run with one Spark; fresh assets are observed; the sensor asks for what is stale."""

from __future__ import annotations

import sys
from pathlib import Path

from dagster import AssetKey, DagsterInstance, Definitions, RunRequest, SkipReason, build_sensor_context, materialize

from mvbuild.dagster import mvbuild_assets, stale_sensor

root = Path(sys.argv[1])
assets = mvbuild_assets(root)
sensor = stale_sensor(assets)
Definitions.validate_loadable(Definitions(assets=[assets], sensors=[sensor]))


def execute(instance: DagsterInstance, selection: list[AssetKey] | None = None):
    result = materialize([mvbuild_assets(root)], instance=instance, raise_on_error=False, selection=selection)
    made = {e.asset_key.path[-1] for e in result.all_events if e.is_step_materialization}
    seen = {e.asset_key.path[-1] for e in result.all_events if e.event_type_value == "ASSET_OBSERVATION"}
    return result, made, seen, {c.check_name: c for c in result.get_asset_check_evaluations()}


with DagsterInstance.ephemeral() as instance:
    asked = sensor(build_sensor_context(instance, definitions=Definitions(assets=[assets], sensors=[sensor])))
    assert isinstance(asked, RunRequest), asked
    assert len(asked.asset_selection) == 18
    result, made, _, checks = execute(instance)
    assert result.success
    assert len(made) == 18, sorted(made)
    assert len(checks) == 58, len(checks)
    said = f"{len(made)} assets materialized, {len(checks)} checks passed"
    assert isinstance(sensor(build_sensor_context(instance, definitions=Definitions(assets=[assets], sensors=[sensor]))), SkipReason)

    seed = root / "seeds" / "returns.csv"
    seed.write_text("\n".join(seed.read_text().splitlines()[:-1]) + "\n")
    asked = sensor(build_sensor_context(instance, definitions=Definitions(assets=[assets], sensors=[sensor])))
    stale = {key.path[-1] for key in asked.asset_selection}
    assert "returns" in stale
    assert "daily_revenue" not in stale
    result, made, seen, checks = execute(instance, list(asked.asset_selection))
    assert result.success
    assert made <= stale
    (root / "tests" / "deliberate.sql").write_text("select * from {{ ref('return_rates') }}\n")
    result, made, seen, checks = execute(instance)
    assert not result.success
    assert [name for name, check in checks.items() if not check.passed] == ["deliberate"]
    assert not made
    assert len(seen) == 18
print(f"{said}; after a change of a seed the sensor asks for {len(stale)}; fresh assets are observed; a failing test fails its check")
