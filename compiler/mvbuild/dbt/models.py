"""ImportState -> the reasons of every model: what it uses, how it is configured, how dbt writes it, and its names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import shorten
from typing import Any

from mvbuild.dbt.blocks import lexed
from mvbuild.dbt.bounds import NotProven
from mvbuild.dbt.config_calls import Argument, ConfigCall, config_calls, remove_arguments
from mvbuild.dbt.guards import Runs
from mvbuild.dbt.hooks import statements
from mvbuild.dbt.import_state import ImportState, ModelImport, Template
from mvbuild.dbt.incremental import OF_RUNS, Shown, full_query, shown_equal
from mvbuild.dbt.read import is_of_run
from mvbuild.dbt.rendering import Renderings
from mvbuild.dbt.scorecard import Item
from mvbuild.dbt.settings import HOOKS, MATERIALIZATIONS, MATERIALIZED, fate
from mvbuild.dbt.template_uses import MacroUses, closure, uses_of
from mvbuild.dbt.templates import OF_RUN, judge_uses
from mvbuild.parse.determinism import nondeterministic_word
from mvbuild.parse.dialect import tokenize
from mvbuild.parse.model import Query
from mvbuild.parse.sql import parse_query
from mvbuild.project.setting import Layer, Setting
from mvbuild.project.settings import ALIASES
from mvbuild.source import MappedText, SourceFile, Span

STORED = ("table", "incremental", "materialized_view")
"""Materializations with rows of their own."""
_SAME_NAME = ("name", "identifier", "table")
_MERGED = ("meta", "tblproperties", "table_properties", "column_types")


def judge_models(work: ImportState, renderings: Renderings) -> None:
    """Judge all models. The layers of the project file and of YAML are in ImportState already; those of config() calls are added here."""
    macros = _macros_as_written(work)
    for model in work.models.values():
        if not _is_enabled(model.layers):
            _disable(work, model)
            continue
        judge_uses(work, model.item, model.template)
        _configure(work, model, renderings)
        if model.enabled:
            _judge(work, model, renderings, macros)
    for model in work.models.values():
        if model.enabled and model.config.get("materialized") == "incremental":
            _judge_upstream(work, model)


def merged(layers: Sequence[Layer]) -> dict[str, Any]:
    """The result of the layers: the nearest one wins, tags add up, and mappings are merged."""
    values: dict[str, Any] = {}
    for layer in layers:
        for key, setting in layer.items():
            name = ALIASES.get(key, key)
            if key in _MERGED and isinstance(setting.value, Mapping):
                values[name] = {**values.get(name, {}), **setting.value}
            else:
                values[name] = setting.value
    return values


def setting_of(layers: Sequence[Layer], *keys: str) -> Setting | None:
    """The setting of the nearest layer."""
    return next((layer[key] for layer in reversed(layers) for key in keys if key in layer), None)


def judge_settings(item: Item, layers: Sequence[Layer], work: ImportState, own: set[str], *, seed: bool = False) -> None:
    """The reasons for settings. Settings of the project file are reported there unless they refuse the model: `own` are the files of the
    thing itself."""
    for layer in layers:
        for key, setting in layer.items():
            verdict, code = fate(key, setting.value, seed=seed)
            span = work.origin(setting.key or setting.span)
            if key in HOOKS:
                _judge_hook(item, key, setting, span, work)
            elif verdict == "refuse":
                item.add(code, _message(code, key), span)
            elif verdict == "remove" and span.file.path in own:
                item.add(code, f"'{key}' is removed", span)
            elif is_of_run(setting.value) and key in ("materialized", "partition_by", "alias", "enabled"):
                item.add("yaml-template", f"'{key}' has a template that mvbuild cannot render in YAML", span)


def _judge_hook(item: Item, key: str, setting: Setting, span: Span, work: ImportState) -> None:
    if setting.value in (None, [], {}, ""):
        return
    found = statements(setting.value, work.macro_bodies, work.project.name)
    if found is None:
        item.add("hook", f"'{key}' runs statements", span)
    elif found:
        item.add("hook-removed", f"'{key}' is removed, which changes no row: {_text_of_hooks(setting.value)}", span)


def _text_of_hooks(value: Any) -> str:
    hooks = value if isinstance(value, list) else [value]
    texts = (hook["sql"] if isinstance(hook, Mapping) else hook for hook in hooks)
    return shorten("; ".join(str(text).strip().rstrip(";") for text in texts), width=120, placeholder=" ...")


def _message(code: str, key: str) -> str:
    if code == "unknown-config":
        return f"'{key}' is a setting of neither dbt nor mvbuild"
    if code == "merge-partial":
        return f"'{key}' makes the table differ from its query"
    return f"'{key}' cannot be imported"


def _is_enabled(layers: Sequence[Layer]) -> bool:
    setting = setting_of(layers, "enabled")
    return setting is None or setting.value is not False


def _disable(work: ImportState, model: ModelImport) -> None:
    """A model that is not compiled is not judged: it may only be written if nothing but an edit of the project can enable it."""
    model.enabled = False
    setting = setting_of(model.layers, "enabled")
    span = work.origin(setting.span) if setting else model.item.span
    if span.text.strip().strip("'\"").lower() == "false":
        model.item.add("disabled", "The model is disabled", span)
    else:
        model.item.add("disabled-by-template", f"'{span.text.strip()}' disables the model", span)


def _configure(work: ImportState, model: ModelImport, renderings: Renderings) -> None:
    rendered = renderings.full(model.template)
    model.layers += rendered.layers
    model.config = merged(model.layers)
    if not _is_enabled(model.layers):
        _disable(work, model)
        return
    for diagnostic in rendered.diagnostics:
        if diagnostic.severity == "error" and model.item.verdict != "refused":
            span = work.origin(diagnostic.span) if diagnostic.span else None
            model.item.add("does-not-compile", f"{diagnostic.message} ({diagnostic.code})", span, help=diagnostic.help)
    for diagnostic in rendered.diagnostics:
        model.of_run = model.of_run or next((name for name in OF_RUN if diagnostic.message.startswith(f"'{name}'")), "")
    model.full = rendered.text


def _judge(work: ImportState, model: ModelImport, renderings: Renderings, macros: Mapping[str, MacroUses]) -> None:
    item = model.item
    judge_settings(item, model.layers, work, {model.template.path, *_yaml_paths(work, model)})
    materialized = str(model.config.get("materialized") or "view")
    place = setting_of(model.layers, "materialized")
    span = work.origin(place.span) if place else None
    if materialized not in MATERIALIZATIONS:
        item.add("materialization", f"mvbuild has no materialization '{materialized}'", span)
    partition = model.config.get("partition_by")
    if partition and not _are_texts(partition) and materialized in STORED:
        found = setting_of(model.layers, "partition_by")
        item.add("partition-by", "'partition_by' is not a list of columns", work.origin(found.span) if found else None)
    if model.full is None:
        return
    query, problems = parse_query(model.full)
    for diagnostic in problems:
        place_of = work.origin(diagnostic.span) if diagnostic.span else None
        item.add("does-not-compile", f"{diagnostic.message} ({diagnostic.code})", place_of, help=diagnostic.help)
    if query:
        reads = {read.parts[0].lower(): work.origin(read.span) for read in reversed(query.reads) if read.kind == "ref"}
        if model.name.lower() in reads:
            item.add("reads-itself", "The model reads its own table outside of a guard", reads[model.name.lower()])
        model.reads = {**_sources_of(work, query), **reads}
    if materialized == "incremental" and not _does_not_render(item):
        _incremental(work, model, renderings)
    elif _guards_of(model.template):
        item.add("not-incremental", "The branch of is_incremental() is removed", _guards_of(model.template)[0])
    if model.of_run:
        place_of_use = next((u.span for u in model.template.uses if u.root == model.of_run), None)
        item.add("run-value", f"It uses '{model.of_run}'", work.origin(place_of_use) if place_of_use else None)
    if item.verdict != "refused":
        _check_cut(model, renderings)
        _check_this(work, model, macros)


def _judge_upstream(work: ImportState, model: ModelImport) -> None:
    """If a table below an incremental model depends on a clock, each of dbt's runs reads a new value, and rows of earlier runs keep
    theirs."""
    seen, stack = {model.name.lower()}, list(model.reads.items())
    while stack:
        name, span = stack.pop()
        upstream = work.models.get(name)
        if name in seen or upstream is None or upstream.full is None:
            continue
        seen.add(name)
        if word := nondeterministic_word(upstream.full.text) or upstream.of_run:
            model.item.add("load-time", f"It reads '{upstream.name}', which uses '{word}'", span)
        stack += [(inner, span) for inner in upstream.reads]


def _sources_of(work: ImportState, query: Query) -> dict[str, Span]:
    return {f"source.{read.parts[0].lower()}": work.origin(read.span) for read in reversed(query.reads) if read.kind == "source"}


def _does_not_render(item: Item) -> bool:
    """The two queries cannot be compared."""
    return any(r.code == "does-not-compile" for r in item.reasons)


def _incremental(work: ImportState, model: ModelImport, renderings: Renderings) -> None:
    """The model is a plain MV if dbt's table is its full query; otherwise the reason why it is not."""
    rendered = renderings.incremental(model.template)
    model.guarded, model.written = rendered.text, renderings.as_written(model.template).text
    problems = [d for d in rendered.diagnostics if d.severity == "error"]
    guard = next(iter(_guards_of(model.template)), None) or next(iter(_guards_of_macros(work, model)), None)
    place = setting_of(model.layers, "incremental_strategy") or setting_of(model.layers, "materialized")
    strategy_span = work.origin(place.key or place.span) if place else model.item.span
    try:
        if rendered.text is None or problems or model.full is None:
            raise NotProven(
                "guard-changes-query", f"The query with its guard cannot be rendered: {problems[0].message}" if problems else ""
            )
        if model.of_run:
            raise NotProven("load-time", f"The incremental query uses '{model.of_run}': each row keeps the value of the run that wrote it")
        queries = (model.full.text, rendered.text.text)
        runs = Runs(after=work.now, other=_other_run(model, renderings))
        shown = shown_equal(model.config, *queries, model.name, work.project.target.adapter, runs)
        _require_same_for_each_run(model, renderings)
    except NotProven as exc:
        is_guard = exc.code.startswith("guard")
        span = guard if is_guard and guard else strategy_span
        if exc.code in OF_RUNS and work.wants_full_query(model):
            _full_query(work, model, renderings, exc, span)
        else:
            model.item.add(exc.code, str(exc), span)
        return
    _tell(model, shown, guard)


def _full_query(work: ImportState, model: ModelImport, renderings: Renderings, why: NotProven, span: Span) -> None:
    """Take the query without the guard, as the user asked, unless even `dbt run --full-refresh` builds another table each time."""
    assert model.full is not None, model.name
    try:
        shown = full_query(model.config, model.full.text, work.project.target.adapter)
        _require_same_for_each_run(model, renderings)
    except NotProven as exc:
        model.item.add(exc.code, str(exc), span)
        return
    model.item.add("full-query", f"The query without is_incremental() is taken. {why}", span)
    model.tested_keys = shown.keys


def _other_run(model: ModelImport, renderings: Renderings) -> str | None:
    """The incremental query if the variables of the run have other values; None if there are none."""
    rendered = renderings.with_other_variables(model.template, incremental=True)
    model.run_values = {name: value for name, value in renderings.given(renderings.asked).items() if isinstance(value, str)}
    return rendered.text.text if renderings.asked and rendered.text is not None else None


def _require_same_for_each_run(model: ModelImport, renderings: Renderings) -> None:
    """Raise NotProven if the query depends on a variable that dbt_project.yml does not set."""
    if model.full is None or not renderings.run_variables(model.template):
        return
    other = renderings.with_other_variables(model.template)
    if other.text is None or _words(other.text) != _words(model.full):
        names = ", ".join(f"'{name}'" for name in renderings.run_variables(model.template))
        raise NotProven("run-variable", f"The query depends on a variable of the run: {names}")


def _tell(model: ModelImport, shown: Shown, guard: Span | None) -> None:
    if guard:
        columns = ", ".join(f"'{g.column}'" for g in shown.guards)
        message = f"The guard on {columns} is removed; it only leaves out rows" if columns else "The branch of is_incremental() is removed"
        model.item.add("guard-removed", message, guard)
    if any(g.is_window for g in shown.guards):
        model.item.add("run-window", "Each run of dbt reads the rows between variables of the run; the MV has all rows at once", guard)
    if shown.keeps:
        model.item.add("kept-rows", "Rows that the query no longer returns leave the MV; dbt keeps them", guard)
    if shown.joins:
        model.item.add("joined-tables", "dbt keeps what a run has joined to a row; the MV follows the joined tables", guard)
    model.tested_keys = shown.keys


def _check_cut(model: ModelImport, renderings: Renderings) -> None:
    """The text without the guards must return what dbt returns while is_incremental() is false."""
    if not _guards_of(model.template) or model.full is None:
        return
    written = renderings.as_written(model.template)
    if written.text is None or _words(written.text) != _words(model.full):
        model.item.add("guard-condition", "The guard cannot be removed from the template", _guards_of(model.template)[0])


def _check_this(work: ImportState, model: ModelImport, macros: Mapping[str, MacroUses]) -> None:
    """`{{ this }}` is dbt's name; outside the guards it would be written into the query. The name without its schema stays the same."""
    left = uses_of(SourceFile(model.template.path, model.template.final.result.text)).uses
    if any(use.root == "this" and use.attribute not in _SAME_NAME for _, use in closure(left, macros)):
        place = next((use.span for use in model.template.uses if use.root == "this"), None)
        model.item.add("this-used", "The query uses `{{ this }}`", work.origin(place) if place else None)


def _macros_as_written(work: ImportState) -> dict[str, MacroUses]:
    """The macros without their guards. Read once for all models: a project can have hundreds of both."""
    return {m.name: m for t in work.macro_files for m in uses_of(SourceFile(t.path, t.final.result.text)).macros}


def _words(text: MappedText) -> list[str]:
    return [token.text for token in tokenize(text.text)]


def _guards_of(template: Template) -> tuple[Span, ...]:
    return template.is_incremental


def _guards_of_macros(work: ImportState, model: ModelImport) -> Iterator[Span]:
    called = {use.root for use in model.template.uses}
    for template in work.macro_files:
        for name, block in template.macros.items():
            if name in called:
                yield from (s for s in template.is_incremental if block.start <= s.start < block.end)


def _yaml_paths(work: ImportState, model: ModelImport) -> set[str]:
    return {s.span.file.path for layer in model.layers for s in layer.values() if s.span.file is not work.project.file}


def _are_texts(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value))


# config() calls


def edit_config_calls(work: ImportState) -> None:
    """Remove and replace arguments in every file. An argument that cannot be edited refuses the models that its call configures."""
    for template in (*work.macro_files, *(m.template for m in work.models.values())):
        text = lexed(template.file.file)
        for call in config_calls(text) if text else ():
            _edit_call(work, template, call)


def _edit_call(work: ImportState, template: Template, call: ConfigCall) -> None:
    users = [m for m in work.models.values() if m.template is template or _configured_in(m, call.span)]
    stored = any(m.config.get("materialized") not in (None, "view", "ephemeral") for m in users)
    removed = [a for a in call.arguments if a.key and fate(a.key, _literal(a))[0] == "remove"]
    layout = [a for a in call.arguments if a.key == "partition_by" and not stored]
    for argument in layout:
        for model in users:
            model.item.add("setting-removed", "'partition_by' is removed: a view stores no rows", argument.key_span)
    remove_arguments(template.final, call, [*removed, *layout])
    for argument in call.arguments:
        if argument.key == "materialized":
            _materialized(template, argument, users)
        elif argument.key in ("schema", "namespace") and "generate_schema_name" not in work.macros:
            value = argument.value.text
            if argument.literal is not None or value != "none":
                literal = f"'_{argument.literal}'" if argument.literal is not None else f"'_' ~ ({value})"
                template.final.replace(argument.value.start, argument.value.end, f"target.schema ~ {literal}")
                for model in users:
                    model.item.add("schema-spelled-out", f"The schema is target.schema, '_' and {value}, as in dbt", argument.value)


def _materialized(template: Template, argument: Argument, users: list[ModelImport]) -> None:
    if argument.literal is not None and argument.literal in MATERIALIZED:
        template.final.replace(argument.value.start, argument.value.end, f"'{MATERIALIZED[argument.literal]}'")
        for model in users:
            model.item.add("table-to-mv", f"`{argument.literal}` becomes `materialized_view`", argument.value)
    elif argument.literal is None:
        for model in users:
            if model.config.get("materialized") in MATERIALIZED:
                model.item.add("computed-setting", "'materialized' is computed", argument.value)


def _configured_in(model: ModelImport, call: Span) -> bool:
    return any(s.span.file.path == call.file.path for layer in model.layers for s in layer.values())


def _literal(argument: Argument) -> Any:
    words: Mapping[str, Any] = {"true": True, "false": False, "none": None, "[]": [], "{}": {}}
    text = argument.value.text.strip()
    return argument.literal if argument.literal is not None else words.get(text.lower(), text)
