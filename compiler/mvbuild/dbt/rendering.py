"""ImportState -> Renderings: every model of the dbt project rendered with and without is_incremental(), and its tables named."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from mvbuild.dataclass import dataclass
from mvbuild.dbt.confined import write_text
from mvbuild.dbt.import_state import ImportState, Template
from mvbuild.dbt.read import items_of, of_every_run, text_of
from mvbuild.dbt.table_names import NameMacros
from mvbuild.dbt.versions import versions_yaml
from mvbuild.parse.model import Rendered
from mvbuild.parse.render import Renderer
from mvbuild.project.load import load_project
from mvbuild.project.loaded import LoadedProject
from mvbuild.source import SourceFile

ANY_VALUE = "20000101"
"""The value of an unset variable in a guard: it can be a number, a string and a date."""


@dataclass(slots=True)
class Mode:
    """How templates are rendered at the moment."""

    incremental: bool = False


@dataclass(slots=True, kw_only=True)
class Renderings:
    renderer: Renderer
    names: NameMacros
    mode: Mode
    guarded: Renderer
    """For queries with their guards: a variable that is not set has a value."""
    other: Renderer
    """For the full query: a variable of the run has another value than the given one or the default."""
    asked: dict[str, None]
    """The variables of the run that `other` was asked for."""
    variables: Mapping[str, Any]

    def full(self, template: Template) -> Rendered:
        self.mode.incremental = False
        return self.renderer.render(SourceFile(template.path, template.prepared.text), template.name)

    def incremental(self, template: Template) -> Rendered:
        self.mode.incremental = True
        try:
            return self.guarded.render(SourceFile(template.path, template.prepared.text), template.name)
        finally:
            self.mode.incremental = False

    def run_variables(self, template: Template) -> tuple[str, ...]:
        """The variables that the full query uses and dbt_project.yml does not set: each run may have other values for them."""
        self.with_other_variables(template)
        return tuple(self.asked)

    def with_other_variables(self, template: Template, *, incremental: bool = False) -> Rendered:
        """The query if each variable of the run has another value."""
        self.asked.clear()
        self.mode.incremental = incremental
        try:
            return self.other.render(SourceFile(template.path, template.prepared.text), template.name)
        finally:
            self.mode.incremental = False

    def given(self, names: Iterable[str]) -> Mapping[str, Any]:
        """The values of variables that were given, or are set."""
        return {name: self.variables[name] for name in names if name in self.variables}

    def as_written(self, template: Template) -> Rendered:
        """The text that the new project gets."""
        self.mode.incremental = False
        return self.renderer.render(SourceFile(template.path, template.final.result.text), template.name)


def start(work: ImportState, env: Mapping[str, str]) -> Renderings:
    """Raises ProjectError only if not even a skeleton of the project can be loaded."""
    loaded = _skeleton(work, env)
    mode = Mode()
    names = NameMacros(target=work.project.target, project=work.project.name, defined=frozenset(work.macros))

    variables = loaded.vars

    def var(name: Any, default: Any = None) -> Any:
        return variables.get(name, default if default is not None else ANY_VALUE)

    asked: dict[str, None] = {}

    def other_var(name: Any, default: Any = None) -> Any:
        if name in work.project.own_vars:
            return variables.get(name, default)
        asked[str(name)] = None
        return _another(variables.get(name, default))

    extra = {**names.template_names(), "is_incremental": lambda *_: mode.incremental}
    return Renderings(
        names=names,
        mode=mode,
        renderer=Renderer(loaded, env, extra),
        guarded=Renderer(loaded, env, {**extra, "var": var}),
        other=Renderer(loaded, env, {**extra, "var": other_var}),
        asked=asked,
        variables=variables,
    )


def _another(value: Any) -> Any:
    """Another value of the same type. A list, mapping or switch decides about the query itself, and gets another value too."""
    if isinstance(value, bool) or value is None:
        return ANY_VALUE if value is None else not value
    if isinstance(value, (int, float)):
        return value + 1
    return f"{value}1" if isinstance(value, str) else value


def _skeleton(work: ImportState, env: Mapping[str, str]) -> LoadedProject:
    """The project with names only: no settings and no properties, which are judged separately."""
    project = work.project
    with tempfile.TemporaryDirectory(prefix="mvbuild-import-") as directory:
        root = Path(directory)
        tree = {
            "name": project.name,
            "vars": of_every_run(project.vars),
            "target": project.target.name,
            "targets": {project.target.name: {"namespace": project.target.schema}},
            **{f"{kind}-paths": list(project.paths[kind]) for kind in ("model", "seed", "macro", "test")},
        }
        tree["model-paths"] = [*tree["model-paths"], "mvbuild_import_sources"]
        write_text(root, "mvbuild.yml", yaml.safe_dump(tree))
        write_text(
            root, "mvbuild_import_sources/sources.yml", yaml.safe_dump({"sources": list(_sources(work)), "models": versions_yaml(work)})
        )
        for model in work.models.values():
            write_text(root, model.template.path, model.template.prepared.text)
        for template in work.macro_files:
            write_text(root, _macro_path(work, template), template.prepared.text)
        for seed in work.seeds.values():
            write_text(root, seed.file.path, "a\n")
        for item in work.snapshots.values():
            write_text(root, f"{project.paths['model'][0]}/mvbuild_import_snapshots/{item.name}.sql", "select 1")
        for item in work.python.values():
            write_text(root, f"{project.paths['model'][0]}/mvbuild_import_python/{item.name}.sql", "select 1")
        return load_project(root, target=None, vars={}, env=env)


def _macro_path(work: ImportState, template: Template) -> str:
    """Generic tests are below the test path, and are macros."""
    top = work.project.paths["macro"][0]
    return template.path if any(template.path.startswith(f"{p}/") for p in work.project.paths["macro"]) else f"{top}/{template.path}"


def _sources(work: ImportState) -> list[dict[str, Any]]:
    found: dict[str, dict[str, dict[str, str]]] = {}
    for file in work.project.yamls:
        for source in items_of(file.tree, "sources"):
            name = text_of(source, "name")
            for table in items_of(source, "tables"):
                inner = text_of(table, "name")
                if name and inner:
                    found.setdefault(name, {}).setdefault(inner.lower(), {"name": inner})
    return [{"name": name, "tables": list(tables.values())} for name, tables in found.items()]
