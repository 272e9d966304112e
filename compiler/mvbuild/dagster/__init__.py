"""project -> Dagster assets and a sensor, over `mvbuild.api`; needs `mvbuild[dagster]`.

In: a project directory or a `Graph`. Out: an `AssetsDefinition` with an asset per model and seed and a check per data test, and a sensor
that asks for what is stale. One run of the assets is one run of mvbuild, with one Spark.

Read first: `assets.py`, `events.py` (a run of mvbuild as a stream of Dagster's events) and `sensor.py`.
"""

from __future__ import annotations

from mvbuild.dagster.assets import mvbuild_assets
from mvbuild.dagster.sensor import stale_sensor

__all__ = ("mvbuild_assets", "stale_sensor")
