"""ImportState -> the files of the new project, without refused things."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mvbuild.dbt.blocks import lexed
from mvbuild.dbt.config_calls import config_calls
from mvbuild.dbt.drafts import Draft
from mvbuild.dbt.exposures import SECTIONS
from mvbuild.dbt.import_state import DeclaredVersion, ImportState, ModelImport
from mvbuild.dbt.models import setting_of
from mvbuild.dbt.project_file import Taken, project_file
from mvbuild.dbt.read import YamlFile, entries_of, get, items_of, text_of
from mvbuild.dbt.snapshots import files_of
from mvbuild.dbt.staying import references, staying_yaml
from mvbuild.dbt.table_names import MACROS
from mvbuild.dbt.versions import declared_in
from mvbuild.dbt.yaml_draft import YamlDraft
from mvbuild.project.yaml_spans import ListNode, Node
from mvbuild.source import MappedText, Segment, SourceMap, Span

Files = dict[str, MappedText]
"""Path -> text, with the map back to the dbt project."""


def taken_models(work: ImportState) -> list[ModelImport]:
    return [m for m in work.models.values() if m.item.verdict != "refused"]


def assemble(work: ImportState) -> Files:
    files: Files = {"mvbuild.yml": project_file(work, taken(work))}
    for model in taken_models(work):
        files[model.template.path] = _model(work, model)
        if needs_key_test(work, model):
            files[key_test_path(work, model)] = _computed(_in_group((model,)) + _key_test(model), model.item.span)
    for seed in work.seeds.values():
        if seed.item.verdict != "refused":
            draft = Draft(seed.file.file)
            for null in seed.nulls:
                draft.replace(null.start, null.end, "")
            files[seed.file.path] = draft.result
    files.update((path, _computed(text, one.item.span)) for path, text, one in files_of(work))
    files.update(_macros(work))
    files.update(_tests(work))
    files.update((one.path, MappedText.of(one.file)) for one in work.project.docs)
    files.update((file.path, MappedText.of(file)) for file in work.project.selectors)
    if sources := staying_yaml(work):
        files[f"{work.project.paths['model'][0]}/tables_of_dbt.yml"] = _computed(sources, work.project.file.line_span(1))
    for file in work.project.yamls:
        text = _yaml(work, file)
        if text is not None:
            files[file.file.path] = text
    return files


def taken(work: ImportState) -> Taken:
    folders: dict[str, frozenset[tuple[str, ...]]] = {}
    models = [m.template.file for m in taken_models(work)]
    seeds = [s.file for s in work.seeds.values() if s.item.verdict != "refused"]
    for kind, found in (("model", models), ("seed", seeds)):
        paths = {(*f.found.folders, f.stem) for f in found}
        folders[kind] = frozenset(path[:i] for path in paths for i in range(1, len(path) + 1))
    settings = {}
    for seed in work.seeds.values():
        if seed.item.verdict != "refused":
            own = {**({"column_types": seed.types} if seed.types else {}), **seed.override}
            if own:
                place = (*seed.file.found.folders, seed.name)
                settings[place] = own
    return Taken(folders=folders, implicit_views=implicit_views(work), seeds=settings)


def implicit_views(work: ImportState) -> bool:
    return any(m.enabled and setting_of(m.layers, "materialized") is None for m in taken_models(work))


def _model(work: ImportState, model: ModelImport) -> MappedText:
    draft = model.template.final.copy()
    for name, staying in model.as_sources.items():
        for start, end in references(work, model.template.file.file.text, name):
            draft.replace(start, end, f"source('{staying.source}', '{staying.name}')")
    if model.override:
        calls = list(config_calls(text)) if (text := lexed(draft.file)) else []
        for call in calls:
            for argument in call.arguments:
                if argument.key in model.override and argument.literal is not None:
                    draft.replace(argument.value.start, argument.value.end, f"'{model.override[argument.key]}'")
        written = {a.key for call in calls for a in call.arguments if a.literal is not None}
        rest = {k: v for k, v in model.override.items() if k not in written}
        if rest:
            draft.insert(0, f"{{{{ config({', '.join(f'{k}={v!r}' for k, v in rest.items())}) }}}}\n")
    return draft.result


def _in_group(models: Iterable[ModelImport]) -> str:
    """A generic test of dbt is in the group of its model. The SQL test in its place says so, where it may not read the model otherwise."""
    private = [setting_of(m.layers, "group") for m in models if (access := setting_of(m.layers, "access")) and access.value == "private"]
    return next((f"{{{{ config(group={group.value!r}) }}}}\n" for group in private if group), "")


def _key_test(model: ModelImport) -> str:
    keys = ", ".join(f"`{key}`" for key in model.tested_keys)
    present = " and ".join(f"`{key}` is not null" for key in model.tested_keys)
    head = "-- dbt merged by this unique_key; the result is the same only while the key is unique.\n"
    return f"{head}select {keys}\nfrom {{{{ {model.call} }}}}\nwhere {present}\ngroup by {keys}\nhaving count(*) > 1\n"


def key_test_path(work: ImportState, model: ModelImport) -> str:
    return f"{work.project.paths['test'][0]}/{model.name.replace('.', '_')}_unique_key.sql"


def needs_key_test(work: ImportState, model: ModelImport) -> bool:
    """Whether a model equals dbt's table only if its key is unique, and no test checks that."""
    return bool(model.tested_keys) and model.enabled and not _has_unique_test(work, model)


def _has_unique_test(work: ImportState, model: ModelImport) -> bool:
    return any(
        (test.unique,) == model.tested_keys and test.item.verdict != "refused" and test.of == f"model.{model.name}"
        for test in work.generic_tests
    )


def _macros(work: ImportState) -> Iterator[tuple[str, MappedText]]:
    for template in work.macro_files:
        draft = template.final.copy()
        dropped = [n for n in template.macros if n in (*MACROS, "is_incremental") or work.macro_items[n].verdict == "refused"]
        for name in dropped:
            block = template.macros[name]
            draft.remove(block.start, block.end)
        result = draft.result
        if result.text.strip() and len(dropped) < max(len(template.macros), 1):
            paths = (*work.project.paths["macro"], *(f"{p}/generic" for p in work.project.paths["test"]))
            below = any(template.path.startswith(f"{p}/") for p in paths)
            yield (template.path if below else f"{work.project.paths['macro'][0]}/{template.path}"), result


def _tests(work: ImportState) -> Iterator[tuple[str, MappedText]]:
    for path, (template, item, _) in work.sql_tests.items():
        if item.verdict != "refused":
            yield path, template.final.result
    top = work.project.paths["test"][0]
    used = set(work.sql_tests)
    for test in work.generic_tests:
        if test.sql and test.item.verdict != "refused":
            name, text = test.sql
            text = _in_group(work.models[key] for read in test.reads if (key := work.named(read)) in work.models) + text
            path, number = f"{top}/{name}", 1
            while path in used:
                number += 1
                path = f"{top}/{name.removesuffix('.sql')}_{number}.sql"
            used.add(path)
            yield path, _computed(text, test.item.span)


def _yaml(work: ImportState, file: YamlFile) -> MappedText | None:
    draft = YamlDraft(file.file, file.tree, is_rewritten=file.is_rewritten)
    for what, part, value in work.changes.get(file.file.path, ()):
        if what == "remove":
            draft.remove(part)
        else:
            draft.replace(part, value)
    refused = {t.node for t in work.generic_tests if t.item.verdict == "refused"}
    refused -= {t.node for t in work.generic_tests if t.item.verdict != "refused"}  # a test of several versions
    described = {one.node for one in work.described if one.item.verdict == "refused"}
    for section in SECTIONS:
        for node in items_of(file.tree, section):
            if id(node) in described:
                draft.remove(node)
    for section, things in (("models", work.models), ("seeds", work.seeds)):
        for node in items_of(file.tree, section):
            if section == "models" and (versions := declared_in(work, node)):
                _versions(work, draft, node, versions, refused)
                continue
            thing = things.get((text_of(node, "name") or "").lower())
            if thing is None or thing.item.verdict == "refused":
                draft.remove(node)
            else:
                _without_tests(draft, node, refused)
                for entry in entries_of(get(node, "config")) if thing.override else ():
                    if entry.key.removeprefix("+") in thing.override:
                        draft.replace(entry.node, thing.override[entry.key.removeprefix("+")])
    for node in items_of(file.tree, "sources"):
        item = work.sources.get((text_of(node, "name") or "?").lower())
        if item is None or item.verdict == "refused":
            draft.remove(node)
        for table in items_of(node, "tables"):
            _without_tests(draft, table, refused)
    kept = [e for e in entries_of(file.tree) if e.key != "version"]
    if all(draft.is_removed(e) or (isinstance(e.node, ListNode) and all(draft.is_removed(n) for n in e.node.items)) for e in kept):
        return None
    return draft.result()


def _versions(work: ImportState, draft: YamlDraft, node: Node, versions: Iterable[DeclaredVersion], refused: Iterable[int]) -> None:
    """Names of tables are written to the files of versions, because their YAML can have settings of several ones."""
    gone = []
    for one in versions:
        model = work.models.get(one.version.name.lower())
        gone.append(model is None or model.item.verdict == "refused")
        if gone[-1]:
            draft.remove(one.item)
        _without_tests(draft, one.item, refused)
    _without_tests(draft, node, refused)
    if all(gone):
        draft.remove(node)


def _without_tests(draft: YamlDraft, node: Node, refused: Iterable[int]) -> None:
    for block in (node, *items_of(node, "columns")):
        for key in ("tests", "data_tests"):
            for test in items_of(block, key):
                if id(test) in refused:
                    draft.remove(test)


def _computed(text: str, origin: Span) -> MappedText:
    return MappedText(text, SourceMap((Segment(0, origin, verbatim=False),)))
