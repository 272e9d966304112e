"""SQL files of the dbt project -> Templates, macros and what they use, in ImportState."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mvbuild.dbt.blocks import cut_guards, cut_tags, lexed, macro_blocks, snapshot_bodies
from mvbuild.dbt.drafts import Draft
from mvbuild.dbt.hooks import macro_texts
from mvbuild.dbt.import_state import ImportState, ModelImport, SnapshotImport, Template
from mvbuild.dbt.keywords import keyword_columns
from mvbuild.dbt.read import DbtFile, items_of, text_of
from mvbuild.dbt.scorecard import Item
from mvbuild.dbt.snapshot_yaml import read_declared
from mvbuild.dbt.table_names import MACROS
from mvbuild.dbt.template_uses import Use, closure, uses_of
from mvbuild.dbt.versions import read_versions
from mvbuild.parse.dbt_utils import UNKNOWN
from mvbuild.parse.libraries import LIBRARIES, PREFIXES, has_macro
from mvbuild.project.keys import TESTS
from mvbuild.source import MappedText, SourceFile, Span

_QUERIES = ("run_query", "statement", "load_result", "store_result", "dbt_spark_get_query")
_OF_DBT = (
    "modules", "flags", "dbt_version", "builtins", "selected_resources", "thread_id", "print",
    "local_md5", "fromyaml", "toyaml", "api", "validation", "database_schemas", "schemas", "sql", "sql_now", "context", "submit_python_job",
)  # fmt: skip
OF_RUN = ("run_started_at", "invocation_id")
_BUILTIN = (
    "ref", "source", "var", "env_var", "config", "log", "is_incremental", "run_query", "statement", "this", "target", "return", "set",
    "zip",
    "fromjson", "tojson", "exceptions", "execute", "project_name", *OF_RUN,
)  # fmt: skip
_OWN_NAMES = (*_BUILTIN, "loop", "self", "super", "caller", "range", "dict", "namespace", "varargs", "kwargs", "true", "false", "none")
_WITH_ATTRIBUTES = ("this", "target", "exceptions", "loop", "namespace", "kwargs", "var", "ref", "source", "env_var")


_OTHER_ON_DATABRICKS = frozenset(
    ("dateadd", "datediff", "split_part", "last_day", "date_spine", "get_url_host", "get_url_path", "get_url_parameter")
)
"""Macros that dbt-databricks defines differently from dbt-spark."""


_FORCED = r"(?:\{%ifvar\('[\w-]+',False\)%\}\{\{return\(True\)\}\}\{%endif%\})?"
_IS_INCREMENTAL = re.compile(
    _FORCED
    + re.escape("{%ifnotexecute%}{{return(False)}}{%else%}{%setrelation=adapter.get_relation(this.database,this.schema,this.table)%}")
    + re.escape(
        "{{return(relationisnotnoneandrelation.type=='table'andmodel.config.materialized=='incremental'andnotshould_full_refresh())}}"
    )
    + re.escape("{%endif%}")
)
"""dbt's definition without spaces, perhaps with a variable that forces it, which is only for `dbt compile`."""


def is_dbts_own(body: str) -> bool:
    """Whether the body of an `is_incremental` says what dbt's says."""
    bare = re.sub(r"\s+|(?<=%)-|-(?=%)|(?<=\{)-|-(?=\})", "", re.sub(r"\{#.*?#\}", "", body, flags=re.DOTALL).replace('"', "'"))
    return _IS_INCREMENTAL.fullmatch(bare.replace("{%-", "{%").replace("-%}", "%}")) is not None


_ADAPTER_IN_MACRO = "adapter-in-macro"
_DISPATCH = re.compile(r"\s*\.\s*dispatch\(\s*['\"](\w+)['\"]\s*(?:,\s*(?:macro_namespace\s*=\s*)?['\"](\w+)['\"]\s*)?\)")


def read_templates(work: ImportState) -> None:
    """Set macros, models, SQL tests and snapshots of ImportState."""
    read_versions(work)
    for file in work.project.files["macro"]:
        _macro_file(work, file)
    for file in work.project.files["test"]:
        if "generic" in file.found.folders[:1] or _is_generic(file.file):
            _macro_file(work, file)
            continue
        template = _template(work, file, None)
        work.sql_tests[file.path] = (template, work.item("test", file.stem, file.start), {})
    for file in work.project.files["model"]:
        _model(work, file)
    for file in work.project.files["snapshot"]:
        _snapshots(work, file)
    read_declared(work)
    for file in work.project.files["analysis"]:
        work.item("analysis", file.stem, file.start).add("analysis", "mvbuild does not support analyses")


def judge_macros(work: ImportState) -> None:
    """Refuse macros that use something that mvbuild's templates do not have, directly or through other macros."""
    work.macro_bodies.update(macro_texts(template.file.file.text for template in work.macro_files))
    for name, macro in work.macros.items():
        item = work.macro_items[name]
        if name in MACROS:
            item.add("name-macro-applied", f"'{name}' was applied to every model; its results are written out")
            continue
        if name == "is_incremental" and is_dbts_own(work.macro_bodies.get(name, "")):
            item.add("same-as-dbt", "The project's 'is_incremental' has the meaning of dbt's")
            continue
        if name in _BUILTIN:
            item.add("overrides-dbt", f"'{name}' replaces dbt's own")
        for use in macro.uses:
            problem = _problem(work, use)
            if problem:
                code, message, help = problem
                item.add(_ADAPTER_IN_MACRO if _stops_if_reached(use, code) else code, message, work.origin(use.span), help=help)
    for name, macro in work.macros.items():
        for use, inner in closure(macro.uses, work.macros):
            if inner.root != name and _is_refused_macro(work, inner):
                _refused_macro(work, work.macro_items[name], use, inner.root)


def _stops_if_reached(use: Use, code: str) -> bool:
    """Whether a template that gets to this place does not compile: then what it calls need not be refused before it is rendered."""
    return code == "adapter-call" and use.root == "adapter" and use.attribute != "dispatch" and use.called


def judge_uses(work: ImportState, item: Item, template: Template) -> None:
    """The reasons to refuse a template because of the names in it."""
    for use in template.uses:
        problem = _problem(work, use)
        if problem:
            code, message, help = problem
            item.add(code, message, work.origin(use.span), help=help)
        elif _is_refused_macro(work, use):
            _refused_macro(work, item, use, use.root)


def refusal(work: ImportState, use: Use) -> str:
    """Why a template cannot use a name, or nothing."""
    problem = _problem(work, use)
    return problem[1] if problem else f"The macro '{use.root}' is refused" if _is_refused_macro(work, use) else ""


def _is_refused_macro(work: ImportState, use: Use) -> bool:
    own = use.attribute is None or use.root == work.project.name
    name = use.attribute if use.root == work.project.name and use.attribute else use.root
    return own and name in work.macro_items and work.macro_items[name].verdict == "refused"


def _refused_macro(work: ImportState, item: Item, use: Use, name: str) -> None:
    reasons = work.macro_items[name].shown if name in work.macro_items else ()
    why = f": {reasons[0].message}" if reasons else ""
    item.add("macro-refused", f"The macro '{name}' is refused{why}", work.origin(use.span))


def _problem(work: ImportState, use: Use) -> tuple[str, str, str] | None:
    root, attribute = use.root, use.attribute
    full = f"{root}.{attribute}" if attribute else root
    if root in work.macros and attribute is None:
        return None
    if root in _QUERIES:
        return "run-query", f"'{root}' runs a query while the template is rendered", ""
    if root == "adapter" and attribute == "quote":
        return None
    if root == "adapter" and attribute == "dispatch":
        return _dispatch_problem(work, use)
    if root == "adapter" and attribute == "type" and work.project.target.adapter == "spark":
        return None
    if root == "adapter":
        return "adapter-call", f"'{full}' calls dbt's adapter", ""
    if root in ("graph", "model"):
        return "graph-used", f"'{full}' is dbt's own information about the project", ""
    if root == "config" and attribute:
        return "config-get", f"'{full}' reads the model's configuration", ""
    if root == "run_started_at" and attribute not in (None, "strftime", "isoformat"):
        return "jinja-name", f"'{full}' exists in dbt but not in mvbuild", ""
    if root == "api" and attribute == "Column" and work.project.target.adapter == "spark":
        return None
    if root in _OF_DBT:
        return "jinja-name", f"'{full}' exists in dbt but not in mvbuild", ""
    if root == "target" and attribute == "type" and work.project.target.adapter == "spark":
        return None
    if root == "target" and attribute not in (None, "name", "schema", "database", "catalog", "namespace", "threads"):
        return "jinja-name", f"'{full}' exists in dbt but not in mvbuild", ""
    if root in LIBRARIES and attribute:
        return _library_problem(work, root, attribute)
    if work.project.target.adapter == "databricks" and attribute is None and use.called and root in _OTHER_ON_DATABRICKS:
        return _library_problem(work, "dbt", root)
    if attribute and use.called and root not in _WITH_ATTRIBUTES and root != work.project.name and root not in _OWN_NAMES:
        return "package-macro", f"'{full}' is a macro of a package", ""
    return None


def _library_problem(work: ImportState, library: str, name: str) -> tuple[str, str, str] | None:
    """`dbt.name` or `dbt_utils.name`. A macro of the project may take its place, as in dbt."""
    code = "dbt-macro" if library == "dbt" else "package-macro"
    if any(f"{prefix}{name}" in work.macros for prefix in PREFIXES):
        return None
    if work.project.target.adapter == "databricks" and name in _OTHER_ON_DATABRICKS:
        return code, f"dbt-databricks gives '{library}.{name}' another meaning than dbt-spark", ""
    if has_macro(library, name):
        return None
    return code, f"mvbuild has no macro '{library}.{name}'", UNKNOWN.get(name, "") if library == "dbt_utils" else ""


def _dispatch_problem(work: ImportState, use: Use) -> tuple[str, str, str] | None:
    """`adapter.dispatch('name')` finds a macro of the project here as in dbt: it comes before those of packages, unless `dispatch:` in the
    project file says another order."""
    text = use.span.file.text
    found = _DISPATCH.match(text, use.span.end)
    name, namespace = (found[1], found[2]) if found else (None, None)
    if name and namespace and has_macro(namespace, name):
        return _library_problem(work, namespace, name)
    is_searched = namespace in (None, work.project.name, *LIBRARIES) or namespace not in _reordered(work)
    own = name is not None and is_searched and any(f"{prefix}{name}" in work.macros for prefix in PREFIXES)
    if own and not (work.project.target.adapter == "databricks" and f"databricks__{name}" in work.macros):
        return None
    return "adapter-call", "'adapter.dispatch' chooses a macro that is not in this project", ""


def _reordered(work: ImportState) -> set[str | None]:
    """The namespaces for which the project file says where to look for macros."""
    return {text_of(node, "macro_namespace") for node in items_of(work.project.tree, "dispatch")}


def _model(work: ImportState, file: DbtFile) -> None:
    declared = work.version_files.get(file.stem.lower())
    version = declared.version if declared else None
    name = version.name if version else file.stem
    if file.found.suffix == ".py":
        item = work.item("model", file.stem, file.start)
        item.add("python-model", "mvbuild's models are SQL")
        work.python[name.lower()] = item
        return
    item = work.item("model", name, file.start)
    other = work.models.get(name.lower())
    if other or (version is None and name.lower() in work.latest):
        place = f": {other.template.path}" if other else ", which has versions"
        item.add("does-not-compile", f"There is another model '{name}'{place}")
        return
    template = _template(work, file, item)
    template.model = name
    work.models[name.lower()] = ModelImport(name=name, template=template, item=item, version=version)


def _snapshots(work: ImportState, file: DbtFile) -> None:
    text = lexed(file.file)
    bodies = snapshot_bodies(text) if text else {}
    for name, span in (cut_tags(Draft(file.file), text).snapshots if text else {file.stem: file.start}).items():
        item = work.item("snapshot", name, span)
        work.snapshots[name.lower()] = item
        if name in bodies:
            block = SnapshotImport(name=name, path=file.path, item=item, body=bodies[name].text)
            work.snapshot_blocks[name.lower()] = block
        else:
            item.add("snapshot", "Its template cannot be parsed", span)


def _macro_file(work: ImportState, file: DbtFile) -> None:
    template = _template(work, file, None)
    text = lexed(file.file)
    template.macros = macro_blocks(text) if text else {}
    work.macro_files.append(template)
    tests = cut_tags(Draft(file.file), text).tests if text else {}
    for macro in uses_of(_prepared_file(template)).macros:
        item = work.item("macro", macro.name, work.origin(macro.span))
        if macro.name in work.macros:
            item.add("does-not-compile", f"There is another macro '{macro.name}'")
            continue
        test = macro.name.removeprefix("test_")
        if test in tests and test in TESTS:
            item.add("test-tag-renamed", f"The test is now the macro '{macro.name}'")
        elif test in tests:
            work.own_tests.add(test)
        if any(s.file is file.file and _inside(s, template.macros.get(macro.name)) for s in template.is_incremental):
            item.add("not-incremental", "The branch of is_incremental() is removed", template.is_incremental[0])
        work.macros[macro.name] = macro
        work.macro_items[macro.name] = item
    for name in template.macros:
        if name not in work.macros:
            work.macro_items.setdefault(name, _unparsed(work, name, template.macros[name]))


def _unparsed(work: ImportState, name: str, span: Span) -> Item:
    item = work.item("macro", name, span)
    item.add("does-not-compile", "Its template cannot be parsed", span)
    return item


def _template(work: ImportState, file: DbtFile, item: Item | None) -> Template:
    draft = Draft(file.file)
    text = lexed(file.file)
    if text is None:
        return Template(path=file.path, file=file, prepared=MappedText.of(file.file), final=draft)
    found = cut_tags(draft, text)
    for name, span in found.materializations.items():
        work.item("macro", name, span).add("custom-materialization", f"'{name}' is a materialization of the project", span)
    _unprefix(work, draft, item, file)
    for start, end in keyword_columns(file.file.text):
        word = file.file.text[start:end]
        draft.replace(start, end, f"`{word}`")
        if item:
            item.add("keyword-quoted", f"The column `{word}` is quoted", Span(file.file, start, end))
    final = draft.copy()
    cut_guards(final, text, found)
    template = Template(
        path=file.path,
        file=file,
        prepared=draft.result,
        final=final,
        is_incremental=tuple(found.is_incremental),
        replaced=tuple(found.replaced),
    )
    template.uses = uses_of(_prepared_file(template)).uses
    work.templates[file.path] = template
    return template


def _unprefix(work: ImportState, draft: Draft, item: Item | None, file: DbtFile) -> None:
    """`project.macro(` -> `macro(`."""
    text = lexed(file.file)
    for tag in text.tags if text else ():
        for i in range(len(tag) - 2):
            name, dot, macro = tag[i : i + 3]
            before = tag[i - 1].text if i else ""
            if name.kind == "name" and name.text == work.project.name and dot.text == "." and macro.kind == "name" and before != ".":
                draft.replace(name.start, dot.end, "")
                if item:
                    item.add(
                        "project-prefix-removed",
                        f"'{name.text}.{macro.text}' becomes '{macro.text}'",
                        Span(file.file, name.start, macro.end),
                    )


def _prepared_file(template: Template) -> SourceFile:
    return SourceFile(template.path, template.prepared.text)


def _is_generic(file: SourceFile) -> bool:
    text = lexed(file)
    return bool(text and cut_tags(Draft(file), text).tests)


def _inside(span: Span, block: Span | None) -> bool:
    return block is not None and block.start <= span.start < block.end


def installed_packages(work: ImportState) -> Iterator[tuple[str, Span]]:
    """The packages of packages.yml and dependencies.yml: their names in templates, and where they are requested."""
    from mvbuild.diagnostics import ProjectError
    from mvbuild.project.files import read_text
    from mvbuild.project.yaml_spans import read_yaml

    for name in ("packages.yml", "dependencies.yml"):
        if not (work.project.root / name).is_file():
            continue
        try:
            file = read_text(work.project.root, name)
        except ProjectError:
            continue
        tree, _ = read_yaml(file)
        for key in ("packages", "projects"):
            for node in items_of(tree, key):
                where = text_of(node, "package") or text_of(node, "git") or text_of(node, "local") or text_of(node, "name") or "?"
                yield where.rstrip("/").rpartition("/")[2].removesuffix(".git").replace("-", "_"), node.span
