"""Target -> `target` in templates, both of SQL and of YAML."""

from __future__ import annotations

from mvbuild.dataclass import dataclass
from mvbuild.project.loaded import Target


@dataclass(frozen=True, slots=True)
class TargetNames:
    """What a template can read of the chosen target. `type` is the adapter that dbt would have: mvbuild runs Spark SQL."""

    name: str
    catalog: str
    database: str
    namespace: str
    schema: str
    threads: int
    type: str = "spark"

    @staticmethod
    def of(target: Target) -> TargetNames:
        namespace = ".".join(target.namespace)
        return TargetNames(target.name, target.catalog_name, target.catalog_name, namespace, namespace, target.threads)
