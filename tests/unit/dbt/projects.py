"""files -> the import of a small dbt project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mvbuild.dbt.scorecard import Item
from mvbuild.dbt.takeover import Takeover, take_over

PROJECT = "name: shop\nprofile: shop\nmodels:\n  +materialized: table\n"
SOURCES = "sources:\n  - name: raw\n    tables:\n      - name: events\n      - name: users\n"


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, text in {"dbt_project.yml": PROJECT, "models/sources.yml": SOURCES, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def taken(root: Path, files: Mapping[str, str | bytes], **options) -> Takeover:
    return take_over(write(root, files), env={}, **options)


def item(found: Takeover, name: str, kind: str = "model") -> Item:
    return next(i for i in found.card.items if (i.kind, i.name) == (kind, name))


def codes(found: Takeover, name: str, kind: str = "model") -> list[str]:
    return [r.code for r in item(found, name, kind).shown]


def text(found: Takeover, path: str) -> str:
    return found.files[path].text
