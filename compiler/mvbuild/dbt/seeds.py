"""ImportState -> the seeds: their settings, the types that dbt finds for their columns, and the fields that it reads as NULL."""

from __future__ import annotations

from mvbuild.dbt.import_state import ImportState, SeedImport
from mvbuild.dbt.models import judge_settings, merged
from mvbuild.dbt.seed_types import seed_columns
from mvbuild.project.csv_rows import CsvError
from mvbuild.source import Span


def judge_seeds(work: ImportState) -> None:
    for seed in work.seeds.values():
        seed.config = merged(seed.layers)
        seed.enabled = seed.config.get("enabled") is not False
        own = {s.span.file.path for layer in seed.layers for s in layer.values() if s.span.file is not work.project.file}
        judge_settings(seed.item, seed.layers, work, own, seed=True)
        if seed.enabled:
            _judge_columns(seed)


def _judge_columns(seed: SeedImport) -> None:
    declared = seed.config.get("column_types") or {}
    delimiter = str(seed.config.get("delimiter") or ",")
    known = {str(name).lower() for name in declared} if isinstance(declared, dict) else set()
    try:
        columns = seed_columns(seed.file.file, delimiter, known)
    except CsvError as exc:
        span = Span(seed.file.file, exc.start, exc.start + 1)
        seed.item.add("seed-unreadable", exc.message, span)
        return
    for unsure in columns.unsure:
        seed.item.add("seed-type-unsure", f"The type of column '{unsure.column}' is uncertain: '{unsure.span.text[:40]}'", unsure.span)
    seed.types, seed.nulls = columns.types, columns.nulls
    if columns.types:
        types = ", ".join(f"{name} {type_}" for name, type_ in columns.types.items())
        seed.item.add("types-written", f"The types that dbt infers are written out: {types}")
    if columns.nulls:
        many = f"{len(columns.nulls)} fields are" if len(columns.nulls) > 1 else "A field is"
        seed.item.add("null-written", f"{many} left empty, which is NULL", columns.nulls[0])
