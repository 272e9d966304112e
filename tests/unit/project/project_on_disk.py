"""files in a temporary directory -> LoadedProject, or its errors as (code, place) pairs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mvbuild.diagnostics import Diagnostic, ProjectError
from mvbuild.project.load import load_project
from mvbuild.project.loaded import LoadedProject

MINIMAL = "name: shop\n"


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    """`mvbuild.yml` is written when no project file is among them."""
    if not {"mvbuild.yml", "mvbuild.yaml", "dbt_project.yml"} & files.keys():
        files = {"mvbuild.yml": MINIMAL, **files}
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)


def load(root: Path, files: Mapping[str, str | bytes], **options: Any) -> LoadedProject:
    write(root, files)
    return load_project(root, **{"target": None, "vars": {}, "env": {}, **options})


def errors(root: Path, files: Mapping[str, str | bytes], **options: Any) -> list[Diagnostic]:
    with pytest.raises(ProjectError) as caught:
        load(root, files, **options)
    assert all(d.help for d in caught.value.diagnostics)
    return list(caught.value.diagnostics)


def places(diagnostics: list[Diagnostic]) -> list[tuple[str, str]]:
    return [(d.code, str(d.span)) for d in diagnostics]
