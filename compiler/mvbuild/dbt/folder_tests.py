"""`tests:` of the project file -> the tests that lose a setting: mvbuild has settings of tests only at the tests themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.dbt.import_state import ImportState
from mvbuild.dbt.read import DbtProject, get
from mvbuild.dbt.scorecard import Item
from mvbuild.project.folders import FolderLayers, Folders, read_folders
from mvbuild.project.keys import TEST_CONFIG

_HARMLESS = ("tags", "meta")
_DEFAULTS: Mapping[str, Any] = {"severity": "error", "enabled": True, "store_failures": False}


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """The settings of all tests in the project file."""

    layers: tuple[FolderLayers, ...]

    def judge(self, item: Item, folders: Folders, own: Collection[str]) -> None:
        """Add a reason for each setting that a test loses. `own`: the settings that the test has itself."""
        values = {key: setting.value for found in self.layers for layer in found.of(folders, item.name) for key, setting in layer.items()}
        for key, value in values.items():
            is_lost = key in TEST_CONFIG.keys and key not in _HARMLESS and key not in own
            if is_lost and value is not None and str(value).lower() != str(_DEFAULTS.get(key)).lower():
                written = str(value).lower() if isinstance(value, bool) else value
                message = f"'{key}: {written}' in dbt_project.yml does not apply to it any more"
                item.add("test-setting-lost", message, item.span, help=f"Write `{key}: {written}` at the test.")


def read_folder_settings(project: DbtProject) -> FolderSettings:
    known = {path for kind in ("model", "seed", "test") for path in project.folders[kind]}
    nodes = [node for key in ("tests", "data_tests") if (node := get(project.tree, key)) is not None]
    rendered = [project.rendered(node) for node in nodes]
    return FolderSettings(
        tuple(read_folders(node, project=project.name, known=known, settings=TEST_CONFIG.keys, report=[]) for node in rendered)
    )


def judge_generic_tests(work: ImportState, settings: FolderSettings) -> None:
    for test in work.generic_tests:
        settings.judge(test.item, _folders_of(work.project, test.whole.file.path), test.settings)


def _folders_of(project: DbtProject, path: str) -> Folders:
    return next(_below(project, path), ())


def _below(project: DbtProject, path: str) -> Iterator[Folders]:
    """The folders between a configured path and a file."""
    for kind in ("model", "seed"):
        for top in project.paths[kind]:
            if path.startswith(f"{top.rstrip('/')}/"):
                yield tuple(path.removeprefix(f"{top.rstrip('/')}/").split("/")[:-1])
