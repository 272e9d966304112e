"""Directory of a dbt-spark project -> Takeover: the files of the mvbuild project, and the scorecard. Nothing is written here."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.dbt import assemble
from mvbuild.dbt.dbt_target import SPARK
from mvbuild.dbt.folder_tests import FolderSettings, judge_generic_tests, read_folder_settings
from mvbuild.dbt.import_state import ImportState, ModelImport, names_of
from mvbuild.dbt.models import edit_config_calls, judge_models, merged
from mvbuild.dbt.naming import name_tables
from mvbuild.dbt.project_file import judge_project
from mvbuild.dbt.proof import cascade, prove
from mvbuild.dbt.properties import judge_properties, read_layers, seeds_of
from mvbuild.dbt.read import read_project
from mvbuild.dbt.rendering import Renderings, start
from mvbuild.dbt.scorecard import KINDS, Item, Scorecard
from mvbuild.dbt.seeds import judge_seeds
from mvbuild.dbt.snapshots import judge_snapshots
from mvbuild.dbt.templates import installed_packages, judge_macros, judge_uses, read_templates
from mvbuild.diagnostics import ProjectError, did_you_mean, error
from mvbuild.parse.libraries import has_macro
from mvbuild.parse.sql import parse_query


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalModel:
    """An incremental model of dbt: its queries without and with is_incremental(), and the query of the new model. `run_values`: the given
    values of the variables of the run."""

    item: Item
    config: Mapping[str, Any]
    full: str
    guarded: str
    written: str
    run_values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """`incremental` has the taken and the refused models whose three queries can be rendered."""

    files: assemble.Files
    card: Scorecard
    incremental: tuple[IncrementalModel, ...] = ()


def take_over(
    root: Path,
    *,
    target: str | None = None,
    schema: str | None = None,
    profiles: tuple[Path, ...] = (),
    vars: Mapping[str, Any] | None = None,
    env: Mapping[str, str],
    now: datetime | None = None,
    full_query: tuple[str, ...] = (),
) -> Takeover:
    """`now` is the time of the import, by default that of the machine. `full_query`: names or patterns of incremental models whose query
    without is_incremental() is wanted. Raises ProjectError if there is no dbt project that can be read, or a pattern matches no model."""
    project = read_project(root.resolve(), profiles=profiles, target=target, vars=vars or {}, env=env, schema=schema)
    work = ImportState(project, now or datetime.now(timezone.utc), full_query=full_query)
    whole = work.item("project", project.name, project.file.line_span(1))
    for diagnostic in project.unreadable:
        item = work.item("resource", diagnostic.span.file.path if diagnostic.span else "?", diagnostic.span or whole.span)
        code = "duplicate-key" if diagnostic.code == "duplicate-key" else "unreadable"
        item.add(code, diagnostic.message, diagnostic.span, help=diagnostic.help if code == "unreadable" else "")
    for span in project.outside:
        whole.add("outside-project", f"'{span.text}' leads out of the project: nothing below it is imported", span)
    seeds_of(work)
    read_templates(work)
    _require_models(work, full_query)
    unknown = read_layers(work)
    judge_macros(work)
    renderings = start(work, env)
    judge_snapshots(work, renderings)
    judge_models(work, renderings)
    judge_seeds(work)
    judge_properties(work)
    name_tables(work, renderings)
    edit_config_calls(work)
    settings = read_folder_settings(project)
    judge_generic_tests(work, settings)
    _sql_tests(work, renderings, settings)
    _packages(work)
    if project.target.adapter not in SPARK:
        _other_dialect(work)
    cascade(work)
    for model in work.models.values():
        if assemble.needs_key_test(work, model):
            model.item.add("unique-key-tested", f"mvbuild adds a test that {_keys_of(model)} is unique")
    judge_project(work, whole, [d.span.start for d in unknown if d.span], assemble.implicit_views(work))
    files = prove(work, whole, env)
    return Takeover(files=files, card=_card(work), incremental=tuple(_incremental(work)))


def _keys_of(model: ModelImport) -> str:
    *first, last = model.tested_keys
    return f"the combination of {', '.join(first)} and {last}" if first else last


def _require_models(work: ImportState, patterns: Iterable[str]) -> None:
    names = [name for model in work.models.values() for name in names_of(model)]
    unknown = [pattern for pattern in patterns if not fnmatch.filter(names, pattern.lower())]
    if unknown:
        raise ProjectError(
            [error("unknown-selector", f"--full-query '{one}' matches no model", help=did_you_mean(one, names)) for one in unknown]
        )


def _incremental(work: ImportState) -> Iterator[IncrementalModel]:
    for model in work.models.values():
        if model.full is not None and model.guarded is not None and model.written is not None:
            queries = {"full": model.full.text, "guarded": model.guarded.text, "written": model.written.text}
            yield IncrementalModel(item=model.item, config=model.config, run_values=model.run_values, **queries)


def _sql_tests(work: ImportState, renderings: Renderings, settings: FolderSettings) -> None:
    for template, item, reads in work.sql_tests.values():
        judge_uses(work, item, template)
        rendered = renderings.full(template)
        settings.judge(item, template.file.found.folders, merged(rendered.layers))
        for diagnostic in rendered.diagnostics:
            if diagnostic.severity == "error" and item.verdict != "refused":
                span = work.origin(diagnostic.span) if diagnostic.span else None
                item.add("does-not-compile", f"{diagnostic.message} ({diagnostic.code})", span, help=diagnostic.help)
        query = parse_query(rendered.text)[0] if rendered.text else None
        reads.update({r.parts[0].lower(): work.origin(r.span) for r in query.reads if r.kind == "ref"} if query else {})


def _packages(work: ImportState) -> None:
    """Refuse packages if something uses a part of them that mvbuild does not have."""
    used: dict[str, int] = {}
    built_in: set[str] = set()
    for uses in (*(t.uses for t in work.templates.values()), *(m.uses for m in work.macros.values())):
        for use in uses:
            if has_macro(use.root, use.attribute or ""):
                built_in.add(use.root)
            elif use.attribute and use.called:
                used[use.root] = used.get(use.root, 0) + 1
    for item in work.items:
        for reason in item.reasons:
            if item.kind == "test" and reason.code == "package-macro":
                package = reason.message[1:].partition(".")[0]
                used[package] = used.get(package, 0) + 1
    tested = {t.kind.partition(".")[0] for t in work.generic_tests if "." in t.kind and t.item.verdict != "refused"}
    for name, span in installed_packages(work):
        item = work.item("package", name, span)
        if used.get(name):
            item.add("package", f"The project uses '{name}' in {used[name]} place{'s' * (used[name] != 1)}", span)
        elif name in built_in or name in tested:
            item.add("package-built-in", f"mvbuild has the macros and tests of '{name}' that the project uses", span)
        else:
            item.add("package-unused", f"No macro or test of '{name}' is used", span)


def _other_dialect(work: ImportState) -> None:
    adapter = work.project.target.adapter
    things: list[Item] = [m.item for m in work.models.values()] + [item for _, item, _ in work.sql_tests.values()]
    for item in things:
        item.add("other-dialect", f"The profile is for {adapter}: its SQL can mean something else in Spark")


def _card(work: ImportState) -> Scorecard:
    target = work.project.target
    items = tuple(sorted(work.items, key=lambda i: (KINDS.index(i.kind), i.span.file.path, i.span.start, i.name)))
    return Scorecard(project=work.project.name, adapter=target.adapter, target=target.name, schema=target.schema, items=items)
