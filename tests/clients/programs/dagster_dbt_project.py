"""dagster-dbt's DbtCliResource with mvbuild as its executable: every asset, every check, live; then tests that fail and warn."""

from __future__ import annotations

import sys
from pathlib import Path

from dagster import AssetCheckSeverity, DagsterInstance, materialize
from dagster_dbt import DbtCliResource, DbtProject, dbt_assets

root, executable = Path(sys.argv[1]), sys.argv[2]
dbt = DbtCliResource(project_dir=str(root), dbt_executable=executable, profiles_dir=str(root), target="dev")


def execute(command: str):
    dbt.cli(["parse", "--quiet"], target_path=root / "target").wait()

    @dbt_assets(manifest=root / "target" / "manifest.json", project=DbtProject(project_dir=root))
    def harbor_market(context, dbt: DbtCliResource):
        yield from dbt.cli([command], context=context).stream()

    with DagsterInstance.ephemeral() as instance:
        result = materialize([harbor_market], instance=instance, resources={"dbt": dbt}, raise_on_error=False)
        made = [e.asset_key.to_user_string() for e in result.all_events if e.is_step_materialization]
        times = [e.timestamp for e in instance.all_logs(result.run_id) if e.dagster_event and e.dagster_event.is_step_materialization]
        return result, made, {c.check_name: c for c in result.get_asset_check_evaluations()}, times


result, made, checks, times = execute("build")
assert result.success
assert len(made) == len(set(made)) == 18, sorted(made)
assert len(checks) == 57, len(checks)
assert all(check.passed for check in checks.values())
# Live: the first asset was materialized seconds before the last one, not at the end.
assert times[-1] - times[0] > 2, times
said = f"{len(made)} assets materialized, {len(checks)} checks passed"

# Again: everything is fresh, and still reported.
result, made, checks, _ = execute("build")
assert result.success
assert len(made) == 18
assert len(checks) == 57

(root / "tests" / "fails_before_publishing.sql").write_text("select * from {{ ref('product_ranking') }}\n")
(root / "tests" / "fails_on_a_view.sql").write_text("select * from {{ ref('stg_returns') }}\n")
(root / "tests" / "warns.sql").write_text("{{ config(severity='warn') }}\nselect * from {{ ref('countries') }}\n")
model = root / "models" / "marts" / "product_ranking.sql"
model.write_text(model.read_text() + "\nlimit 100000\n")
from dagster_dbt.dbt_manifest import read_manifest_path  # noqa: E402

read_manifest_path.cache_clear()
result, made, checks, _ = execute("build")
assert not result.success
failed = {name for name, check in checks.items() if not check.passed}
assert failed == {"fails_before_publishing", "fails_on_a_view", "warns"}, failed
assert checks["warns"].severity == AssetCheckSeverity.WARN
assert checks["fails_on_a_view"].severity == AssetCheckSeverity.ERROR
assert not any("product_ranking" in name for name in made), made
print(f"{said}; again fresh: the same; with tests that fail: {', '.join(sorted(failed))} failed, product_ranking was not materialized")
