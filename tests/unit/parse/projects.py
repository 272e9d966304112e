"""name -> text mappings -> LoadedProject, built in memory for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mvbuild.project.loaded import LoadedProject, ModelFile, Properties, SourceTable, SparkSettings, Target
from mvbuild.project.setting import EMPTY, Layer
from mvbuild.source import SourceFile, Span

FILE = SourceFile("mvbuild.yml", "name: shop\n")


def project(
    models: Mapping[str, str] = EMPTY,
    *,
    macros: Mapping[str, str] = EMPTY,
    tests: Mapping[str, str] = EMPTY,
    sources: tuple[tuple[str, str], ...] = (("raw", "orders"), ("raw", "customers")),
    variables: Mapping[str, Any] = EMPTY,
    layers: Mapping[str, tuple[Layer, ...]] = EMPTY,
) -> LoadedProject:
    target = Target(
        name="dev",
        catalog_name="lake",
        catalog={"type": "sql"},
        namespace=("mart",),
        spark=SparkSettings(),
        threads=2,
        embedded=True,
    )
    return LoadedProject(
        root=Path("/nowhere"),
        name="shop",
        version=None,
        file=FILE,
        target=target,
        target_names=("dev",),
        target_path=Path("/nowhere/target"),
        vars=variables,
        models=tuple(_model(name, text, layers.get(name, ())) for name, text in models.items()),
        seeds=(),
        sources=tuple(_source(*names) for names in sources),
        macros=tuple(SourceFile(f"macros/{name}.sql", text) for name, text in macros.items()),
        tests=tuple(SourceFile(f"tests/{name}.sql", text) for name, text in tests.items()),
    )


def _model(name: str, text: str, layers: tuple[Layer, ...]) -> ModelFile:
    return ModelFile(name=name, file=SourceFile(f"models/{name}.sql", text), folders=(), layers=layers, properties=Properties())


def _source(source: str, name: str) -> SourceTable:
    return SourceTable(
        source=source,
        name=name,
        catalog=None,
        namespace=(source,),
        identifier=name,
        properties=Properties(),
        tags=(),
        meta=EMPTY,
        span=Span(FILE, 0, 4),
    )
