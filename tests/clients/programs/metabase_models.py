"""dbt-metabase's reader of the manifest: models, columns and foreign keys."""

from __future__ import annotations

import sys
from pathlib import Path

from dbtmetabase.manifest import Manifest

models = Manifest(Path(sys.argv[1]) / "target" / "manifest.json").read_models()
keys = {(m.name, c.name): c.fk_target_table for m in models for c in m.columns if c.fk_target_table}
assert keys["order_facts", "customer_id"].lower().endswith("stg_customers"), keys
# It does not read seeds, so foreign keys to seeds are left out.
assert {model for model, _ in keys} == {"order_facts", "stg_orders"}, keys
print(f"{len(models)} models, {len(keys)} foreign keys, in the right direction")
