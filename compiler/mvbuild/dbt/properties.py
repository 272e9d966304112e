"""YAML of models, seeds and sources -> layers of settings, and the changes to the YAML, in ImportState."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mvbuild.dbt.exposures import SECTIONS, judge_described
from mvbuild.dbt.generic_tests import read_tests
from mvbuild.dbt.import_state import DeclaredVersion, ImportState, ModelImport, SeedImport
from mvbuild.dbt.read import DbtProject, YamlFile, entries_of, get, is_of_run, items_of, text_of
from mvbuild.dbt.scorecard import Item, Kind
from mvbuild.dbt.settings import KNOWN, fate
from mvbuild.dbt.settings import MATERIALIZED as _BECOMES
from mvbuild.dbt.versions import declared_in
from mvbuild.diagnostics import Diagnostic
from mvbuild.project.folders import FolderLayers, Folders, layer_of, read_folders
from mvbuild.project.folders import setting_of as setting_of_node
from mvbuild.project.key_types import Block
from mvbuild.project.keys import COLUMN, COLUMN_CONFIG, GROUP, MODEL, SEED, SOURCE, SOURCE_CONFIG, SOURCE_FRESHNESS, SOURCE_TABLE, VERSION
from mvbuild.project.setting import Layer
from mvbuild.project.yaml_spans import Entry, MapNode, Node, ScalarNode

_OTHER: Mapping[str, tuple[Kind, str]] = {
    "metrics": ("metric", "metric"),
    "semantic_models": ("semantic model", "metric"),
    "saved_queries": ("saved query", "metric"),
    "functions": ("resource", "resource"),
    "selectors": ("resource", "selector"),
}
_SILENT = ("macros", "analyses", "anchors", "data_tests", "tests", "config-version")
_AT_THE_TOP = ("tags", "meta", "enabled", "group", "access")
"""Settings that can be outside of `config:`."""
_TOP = ("models", "seeds", "sources", "groups", "version")


def read_layers(work: ImportState) -> list[Diagnostic]:
    """Add the settings of the project file and of YAML to models and seeds. Returns the configuration in the project file for paths that do
    not exist."""
    project, report = work.project, list[Diagnostic]()
    for kind, found in (("model", work.models), ("seed", work.seeds)):
        known = {(*f.found.folders, f.stem) for f in project.files[kind]} | set(project.folders[kind])
        known |= {path for thing in found.values() if isinstance(thing, ModelImport) for path in _paths_of_version(thing)}
        node = get(project.tree, f"{kind}s")
        rendered = project.rendered(node) if node else None
        folders = read_folders(rendered, project=project.name, known=known, settings=KNOWN, report=report)
        for thing in found.values():
            file = thing.template.file if isinstance(thing, ModelImport) else thing.file
            thing.layers += folders.of(file.found.folders, file.stem)
            if isinstance(thing, ModelImport):
                _require_no_own_folder(thing, folders)
    for yaml in project.yamls:
        for section, things in (("models", work.models), ("seeds", work.seeds)):
            for node in items_of(yaml.tree, section):
                versions = declared_in(work, node) if section == "models" else []
                described = things.get((text_of(node, "name") or "").lower())
                if described is not None and not versions:
                    described.layers += _layers(project, node, _AT_THE_TOP)
                for one in versions:
                    if (model := work.models.get(one.version.name.lower())) is not None:
                        model.layers += (*_layers(project, node, _AT_THE_TOP), *_layers(project, one.item, ("access",)))
    return report


def _paths_of_version(model: ModelImport) -> tuple[Folders, ...]:
    """In the project file of dbt, the model is a folder, and each version is below it."""
    if model.version is None:
        return ()
    of_model = (*model.template.file.found.folders, model.version.model)
    return of_model, (*of_model, f"v{model.version.v}")


def _require_no_own_folder(model: ModelImport, folders: FolderLayers) -> None:
    for path in _paths_of_version(model):
        for setting in (setting for layer in folders.layers.get(path, ()) for setting in layer.values()):
            message = f"'{'/'.join(path)}' in the project file configures versions, which mvbuild configures by file"
            model.item.add(
                "folder-config", message, setting.key or setting.span, help="Write it under `config:` of the model or the version."
            )


def _layers(project: DbtProject, node: Node, at_the_top: tuple[str, ...]) -> list[Layer]:
    rendered = project.rendered(node)
    top = {e.key: setting_of_node(e.node, e) for e in entries_of(rendered) if e.key in at_the_top}
    return [layer for layer in (top, layer_of(get(rendered, "config"))) if layer]


def judge_properties(work: ImportState) -> None:
    """Judge everything in YAML that mvbuild does not have, or has in another form."""
    judges = [_Judge(work, file) for file in work.project.yamls]
    for judge in judges:
        judge.judge()
    for judge in judges:
        judge.described()
    for file in (*work.project.yamls, *work.project.other_yamls):
        for node in items_of(file.tree, "snapshots"):
            _tests_of_snapshot(work, file.file.path, node)
    for file in work.project.other_yamls:
        for entry in entries_of(file.tree):
            if entry.key in _OTHER:
                _others(work, entry)
            elif entry.key in SECTIONS:
                for item in judge_described(work, entry):
                    item.add("resource", f"{file.file.path} is not below a model path", item.span, help="Move it below one.")


def _others(work: ImportState, entry: Entry) -> None:
    kind, code = _OTHER[entry.key]
    for node in items_of(MapNode((entry,), entry.span), entry.key):
        name = text_of(node, "name") or "?"
        item = work.item(kind, name, node.span)
        item.add(code, f"mvbuild has no {entry.key.replace('_', ' ')}", node.span)


def _tests_of_snapshot(work: ImportState, path: str, node: Node) -> None:
    name = text_of(node, "name") or "?"
    if name.lower() not in work.snapshots:
        return
    before = len(work.generic_tests)
    for tested, column in ((node, None), *((column, text_of(column, "name")) for column in items_of(node, "columns"))):
        read_tests(work, path, tested, f"snapshot.{name}", f"ref('{name}')", column)
    for test in work.generic_tests[before:]:
        if work.refused(name.lower()) is None:
            help = f"Write it in YAML for the model '{name}', which the snapshot becomes."
            test.item.add("test-of-snapshot", "It tests a snapshot that becomes an MV", help=help)


class _Judge:
    """Judges one file."""

    def __init__(self, work: ImportState, file: YamlFile) -> None:
        self.work = work
        self.file = file
        self.path = file.file.path

    def judge(self) -> None:
        for entry in entries_of(self.file.tree):
            if entry.key in _OTHER:
                _others(self.work, entry)
                self.work.remove(self.path, entry)
            elif entry.key not in _TOP and entry.key not in SECTIONS:
                self.work.remove(self.path, entry)
        for node in items_of(self.file.tree, "models"):
            versions = declared_in(self.work, node)
            for one in versions:
                self._version(one)
            if not versions:
                self._described(node, self.work.models, MODEL, "model")
        for node in items_of(self.file.tree, "seeds"):
            self._described(node, self.work.seeds, SEED, "seed")
        for node in items_of(self.file.tree, "sources"):
            self._source(node)
        for node in items_of(self.file.tree, "groups"):
            self._keys(node, GROUP, self.work.item("resource", f"group {text_of(node, 'name')}", node.span))

    def described(self) -> None:
        """Exposures and unit tests, when the sources of all files are known."""
        for entry in entries_of(self.file.tree):
            if entry.key in SECTIONS:
                judge_described(self.work, entry)

    def _described(self, node: Node, things: Mapping[str, ModelImport] | Mapping[str, SeedImport], block: Block, kind: str) -> None:
        name = text_of(node, "name")
        thing = things.get((name or "").lower())
        if thing is None:
            if name and name.lower() not in self.work.python:
                self.work.item("resource", f"{kind} {name}", node.span).add("unknown-name", f"Unknown {kind} '{name}'", node.span)
            self.work.remove(self.path, node)
            return
        item = thing.item
        self._config(node, item, kind)
        self._keys(node, block, item, keep=("config",))
        self._content(node, item, f"{kind}.{thing.name}", f"ref('{thing.name}')")

    def _version(self, one: DeclaredVersion) -> None:
        version = one.version
        model = self.work.models.get(version.name.lower())
        if model is None:
            if version.name.lower() not in self.work.python:
                message = f"The version {version.v} of '{version.model}' has no file {version.file}.sql"
                self.work.item("resource", f"model {version.name}", version.span).add("unknown-name", message, version.span)
            self.work.remove(self.path, one.item)
            return
        for node, block in ((one.as_model, MODEL), (one.item, VERSION)):
            self._config(node, model.item, "model")
            self._keys(node, block, model.item)
        self._content(one.as_model, model.item, f"model.{model.name}", model.call)

    def _content(self, node: Node, item: Item, of: str, table: str) -> None:
        """Descriptions, columns and tests."""
        read_tests(self.work, self.path, node, of, table, None)
        columns = list(items_of(node, "columns"))
        for column in list(_repeated(columns)):
            item.add("duplicate-key", f"The column '{text_of(column, 'name')}' is described twice", column.span)
            self.work.remove(self.path, column)
            columns.remove(column)
        for column in columns:
            self._keys(column, COLUMN, item)
            self._keys(get(column, "config"), COLUMN_CONFIG, item)
            read_tests(self.work, self.path, column, of, table, text_of(column, "name"))

    def _source(self, node: Node) -> None:
        name = text_of(node, "name") or "?"
        item = self.work.item("source", name, node.span)
        self.work.sources[name.lower()] = item
        self._keys(node, SOURCE, item)
        self._keys(get(node, "config"), SOURCE_CONFIG, item)
        self._freshness(node, item)
        self._schema(node, item)
        for table in items_of(node, "tables"):
            inner = text_of(table, "name") or "?"
            self._keys(table, SOURCE_TABLE, item)
            self._keys(get(table, "config"), SOURCE_CONFIG, item)
            self._freshness(table, item)
            self._content(table, item, f"source.{name}.{inner}", f"source('{name}', '{inner}')")

    def _freshness(self, node: Node, item: Item) -> None:
        for holder in (node, get(node, "config")):
            self._keys(get(holder, "freshness"), SOURCE_FRESHNESS, item)

    def _schema(self, node: Node, item: Item) -> None:
        """Templates in the names of a source."""
        for key in ("schema", "database", "catalog", "namespace"):
            value = get(node, key)
            rendered = self.work.project.rendered(value) if value else None
            if isinstance(value, ScalarNode) and isinstance(rendered, ScalarNode) and is_of_run(rendered.value):
                item.add("yaml-template", f"'{key}' has a template that mvbuild cannot render in YAML", value.span)

    def _keys(self, node: Node | None, block: Block, item: Item, keep: tuple[str, ...] = ()) -> None:
        for entry in entries_of(node):
            if entry.key not in block.keys and entry.key not in block.aliases and entry.key not in keep:
                item.add("property-removed", f"'{entry.key}' is removed from {block.what}", entry.span)
                self.work.remove(self.path, entry)

    def _config(self, node: Node, item: Item, kind: str) -> None:
        for entry in entries_of(get(node, "config")):
            key = entry.key.removeprefix("+")
            value = setting_of_node(entry.node).value
            verdict, _ = fate(key, value, seed=kind == "seed")
            if verdict == "remove":
                self.work.remove(self.path, entry)
            elif key == "materialized" and value in _BECOMES:
                item.add("table-to-mv", f"`{value}` becomes `materialized_view`", entry.node.span)
                self.work.replace(self.path, entry.node, _BECOMES[str(value)])


def seeds_of(work: ImportState) -> None:
    """Set the seeds of ImportState."""
    for file in work.project.files["seed"]:
        item = work.item("seed", file.stem, file.start)
        if file.stem.lower() in work.seeds:
            item.add("does-not-compile", f"There is another seed '{file.stem}'")
            continue
        work.seeds[file.stem.lower()] = SeedImport(name=file.stem, file=file, item=item)


def _repeated(columns: list[Node]) -> Iterator[Node]:
    """The columns that another one of the same name replaces. dbt uses the last one; what has tests is kept."""
    last: dict[str, Node] = {}
    for column in columns:
        name = (text_of(column, "name") or "").lower()
        other = last.get(name)
        if other is None or not name:
            last[name] = column
        elif not (get(other, "tests") or get(other, "data_tests")):
            last[name] = column
            yield other
        elif not (get(column, "tests") or get(column, "data_tests")):
            yield column
