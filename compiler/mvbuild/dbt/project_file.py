"""dbt_project.yml + what is imported -> mvbuild.yml: the same file without keys that have no meaning, and with dbt's defaults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.dbt.import_state import ImportState
from mvbuild.dbt.naming import prefixed, schema_entries
from mvbuild.dbt.read import PATHS, DbtProject, entries_of, get
from mvbuild.dbt.scorecard import Item
from mvbuild.dbt.settings import MATERIALIZED, fate
from mvbuild.dbt.yaml_draft import YamlDraft
from mvbuild.project.folders import setting_of as setting_of_node
from mvbuild.project.keys import PROJECT
from mvbuild.project.yaml_spans import Entry, MapNode, Node, has_templates, is_empty, plain
from mvbuild.source import MappedText

_RENAMED = {"source-paths": "model-paths", "data-paths": "seed-paths"}
_PATH_KINDS = {key: kind for kind, (_, keys, _) in PATHS.items() for key in keys}
_HOOKS = ("on-run-start", "on-run-end")
_HARMLESS_OF_TESTS = ("store_failures", "store_failures_as", "schema", "database", "tags", "meta", "limit")
_OF_EACH_TEST = ("store_failures", "store_failures_as", "limit")
"""Those that mvbuild has at each test."""
_HARMLESS_OF_SOURCES = ("tags", "meta", "freshness", "loaded_at_field")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The files of the new project. `folders` has the folders of models and seeds, with the files as if they were folders."""

    folders: Mapping[str, frozenset[tuple[str, ...]]]
    implicit_views: bool
    """Whether a model has no setting for its materialization."""
    seeds: Mapping[tuple[str, ...], Mapping[str, Any]] = field(default_factory=dict)
    """The settings of seeds, by the path of folders and the name."""


def judge_project(work: ImportState, item: Item, unknown: Iterable[int], implicit_views: bool) -> None:
    """The reasons for the project as a whole. `unknown` are the offsets of folder configuration for paths that do not exist."""
    absent = set(unknown)
    for entry in _of_runs(work):
        if entry.key in work.project.given_vars:
            item.add("var-removed", f"The variable '{entry.key}' is removed: its value differs in each run", entry.span)
        else:
            item.add(
                "yaml-template", f"The value of the variable '{entry.key}' contains a template that YAML does not support", entry.node.span
            )
    for entry in entries_of(work.project.tree):
        if entry.key in _HOOKS and not is_empty(entry.node) and plain(entry.node) != []:
            item.add("run-hook", f"'{entry.key}' runs statements", entry.span)
        elif entry.key in ("tests", "data_tests"):
            _folder(item, entry, _HARMLESS_OF_TESTS)
        elif entry.key in ("sources",):
            _folder(item, entry, _HARMLESS_OF_SOURCES)
        elif entry.key not in PROJECT.keys and entry.key not in _HOOKS:
            item.add("key-removed", f"'{entry.key}' has no meaning in mvbuild", entry.span)
    for kind in ("models", "seeds"):
        for entry in _all_entries(get(work.project.tree, kind)):
            key = entry.key.removeprefix("+")
            value = setting_of_node(entry.node).value
            if entry.span.start in absent:
                item.add("unused-path", f"'{entry.key}' configures nothing", entry.span)
            elif fate(key, value, seed=kind == "seeds")[0] == "remove":
                item.add("grants" if key == "grants" else "setting-removed", f"'{entry.key}' is removed", entry.span)
            elif key == "materialized" and value in MATERIALIZED:
                item.add("table-to-mv", f"`{value}` becomes `materialized_view`", entry.node.span)
    if implicit_views:
        item.add("view-written", "`+materialized: view` is added for the models that set none")


def _of_runs(work: ImportState) -> list[Entry]:
    """The variables whose values have templates of a run, those of packages too."""
    return list(_with_templates(work, get(work.project.tree, "vars")))


def _with_templates(work: ImportState, vars: Node | None) -> Iterator[Entry]:
    for entry in entries_of(vars):
        if isinstance(entry.node, MapNode):
            yield from _with_templates(work, entry.node)
        elif has_templates(work.project.rendered(entry.node)):
            yield entry


def project_file(work: ImportState, taken: Taken) -> MappedText:
    project = work.project
    draft = YamlDraft(project.file, project.tree, is_rewritten=project.is_rewritten)
    for entry in entries_of(project.tree):
        if entry.key in _RENAMED:
            draft.remove(entry)
            draft.insert((_RENAMED[entry.key],), list(project.paths[_PATH_KINDS[entry.key]]))
        elif entry.key not in PROJECT.keys or entry.key in ("targets", "target"):
            draft.remove(entry)
        elif entry.key in _PATH_KINDS and any(entry.node.span.start <= span.start < entry.node.span.end for span in project.outside):
            draft.replace(entry.node, list(project.paths[_PATH_KINDS[entry.key]]))
    for variable in _of_runs(work):
        draft.remove(variable)
    for kind, section in (("model", "models"), ("seed", "seeds")):
        _folders(draft, get(project.tree, section), (), taken.folders[kind], project.name, kind == "seed", at_top=True)
        if "generate_schema_name" not in work.macros:
            node = get(project.tree, section)
            for entry in schema_entries(node if isinstance(node, MapNode) else None):
                if (new := prefixed(work, entry.node)) and not draft.is_removed(entry):
                    draft.replace(entry.node, new)
    if taken.implicit_views:
        _write_views(draft, get(project.tree, "models"))
    for path, settings in taken.seeds.items():
        top = (project.name,) if isinstance(get(get(project.tree, "seeds"), project.name), MapNode) else ()
        for key, value in settings.items():
            draft.insert(("seeds", *top, *path, f"+{key}"), value)
    for kind in ("model", "seed", "macro", "test"):
        if project.paths[kind] != (PATHS[kind][0],) and not any(get(project.tree, key) for key in PATHS[kind][1]):
            draft.insert((f"{kind}-paths",), list(project.paths[kind]))
    if folders := _docs_paths(project):
        if (named := get(project.tree, "docs-paths")) is not None:
            draft.replace(named, folders)
        else:
            draft.insert(("docs-paths",), folders)
    draft.insert(("targets",), {project.target.name: {"namespace": project.target.schema}})
    return draft.result() or MappedText.of(project.file)


def _docs_paths(project: DbtProject) -> list[str]:
    """The folders of Markdown files, if those of dbt_project.yml are not enough: dbt reads docs blocks below every path."""
    read = (*project.docs_paths, *(path for kind in ("model", "seed", "macro") for path in project.paths[kind]))
    unread = [one.path for one in project.docs if not any(_is_below(one.path, path) for path in read)]
    others = (path for kind in ("test", "snapshot", "analysis") for path in project.paths[kind])
    more = [path for path in others if any(_is_below(one, path) for one in unread)]
    node = get(project.tree, "docs-paths")
    leads_out = node is not None and any(node.span.start <= span.start < node.span.end for span in project.outside)
    return [*project.docs_paths, *more] if more or leads_out else []


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/")


def _write_views(draft: YamlDraft, models: Node | None) -> None:
    own = models.get("+materialized") or models.get("materialized") if isinstance(models, MapNode) else None
    if own is None:
        draft.insert(("models", "+materialized"), "view")


def _folders(
    draft: YamlDraft,
    node: Node | None,
    here: tuple[str, ...],
    known: frozenset[tuple[str, ...]],
    project: str,
    seed: bool,
    *,
    at_top: bool = False,
) -> None:
    """Remove settings that mvbuild does not have, and folders that do not exist."""
    for entry in entries_of(node):
        key = entry.key.removeprefix("+")
        value = setting_of_node(entry.node).value
        if at_top and entry.key == project:
            _folders(draft, entry.node, here, known, project, seed)
        elif not entry.key.startswith("+") and (*here, entry.key) in known and isinstance(entry.node, MapNode):
            _folders(draft, entry.node, (*here, entry.key), known, project, seed)
        elif key == "materialized" and value in MATERIALIZED:
            draft.replace(entry.node, MATERIALIZED[str(value)])
        elif fate(key, value, seed=seed)[0] != "keep":
            draft.remove(entry)


def _folder(item: Item, entry: Entry, harmless: tuple[str, ...]) -> None:
    keys = [(inner.key.removeprefix("+"), inner) for inner in _all_entries(entry.node)]
    settings = [(key, inner) for key, inner in keys if key in harmless or not isinstance(inner.node, MapNode)]
    affects_results = any(key not in harmless for key, _ in settings)
    for key, inner in settings:
        if key not in harmless or (key in _OF_EACH_TEST and affects_results):
            item.add("folder-config", f"'{inner.key}' below '{entry.key}'", inner.span)
        elif key in _OF_EACH_TEST:
            item.add("key-removed", f"'{inner.key}' below '{entry.key}' is removed", inner.span)
    item.add("key-removed", f"'{entry.key}' has no meaning in mvbuild", entry.span)


def _all_entries(node: Node | None, depth: int = 0) -> list[Entry]:
    found: list[Entry] = []
    for entry in entries_of(node):
        found.append(entry)
        if isinstance(entry.node, MapNode) and depth < 50 and not entry.key.startswith("+"):
            found += _all_entries(entry.node, depth + 1)
    return found
