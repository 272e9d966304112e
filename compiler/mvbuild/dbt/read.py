"""Directory of a dbt project -> DbtProject: its files, its project file and the target of its profile. Nothing is judged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.dbt.confined import is_inside
from mvbuild.dbt.dbt_target import DbtTarget, read_target
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.project.files import Found, Listing, list_files, read_text
from mvbuild.project.interpolate import Interpolation
from mvbuild.project.yaml_spans import Entry, ListNode, MapNode, Node, ScalarNode, is_template, plain, read_yaml
from mvbuild.selection.selectors_file import FILES as SELECTORS
from mvbuild.source import SourceFile, Span

PATHS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "model": ("models", ("model-paths", "source-paths"), (".sql", ".py")),
    "seed": ("seeds", ("seed-paths", "data-paths"), (".csv",)),
    "macro": ("macros", ("macro-paths",), (".sql",)),
    "test": ("tests", ("test-paths",), (".sql",)),
    "snapshot": ("snapshots", ("snapshot-paths",), (".sql",)),
    "analysis": ("analyses", ("analysis-paths",), (".sql",)),
}
"""Kind -> the default folder, its keys in dbt_project.yml (the second one is that of old projects), and the suffixes."""
_DOCS_BLOCK = re.compile(r"\{%-?\s*docs\s")


@dataclass(frozen=True, slots=True, kw_only=True)
class DbtFile:
    """A file of one kind. `folders` are those between the configured path and the file."""

    found: Found
    file: SourceFile

    @property
    def path(self) -> str:
        return self.found.path

    @property
    def stem(self) -> str:
        return self.found.stem

    @property
    def start(self) -> Span:
        return self.file.line_span(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlFile:
    file: SourceFile
    tree: MapNode
    is_rewritten: bool = False
    """Whether the text has keys that the tree does not have: the earlier ones of duplicates, which dbt ignores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DbtProject:
    root: Path
    file: SourceFile
    """dbt_project.yml."""
    tree: MapNode
    is_rewritten: bool
    """See YamlFile."""
    name: str
    target: DbtTarget
    paths: Mapping[str, tuple[str, ...]]
    outside: tuple[Span, ...]
    """The configured paths that lead out of the project: nothing below them is read, and no file is written there."""
    vars: Mapping[str, Any]
    own_vars: Mapping[str, Any]
    """The variables of dbt_project.yml only: every run has them."""
    given_vars: Mapping[str, Any]
    """The variables of the command line, which are not written to files."""
    env: Mapping[str, str]
    files: Mapping[str, tuple[DbtFile, ...]]
    """By kind."""
    folders: Mapping[str, frozenset[tuple[str, ...]]]
    yamls: tuple[YamlFile, ...]
    """The properties of models and seeds that mvbuild reads."""
    other_yamls: tuple[YamlFile, ...]
    docs: tuple[DbtFile, ...]
    """The Markdown files with docs blocks."""
    selectors: tuple[SourceFile, ...]
    """selectors.yml, which mvbuild reads as it is."""
    docs_paths: tuple[str, ...]
    """The folders of Markdown files that dbt_project.yml names."""
    unreadable: tuple[Diagnostic, ...]

    def rendered(self, node: Node) -> Node:
        """Replace env_var(), var() and target in YAML by their values; other templates stay as written."""
        return _rendered(node, Interpolation(self.env, self.vars, {"target": _names_of(self.target)}))


def read_project(
    root: Path, *, profiles: tuple[Path, ...], target: str | None, vars: Mapping[str, Any], env: Mapping[str, str], schema: str | None
) -> DbtProject:
    """Read a dbt project. Raises ProjectError if there is none that can be read."""
    written, repeated = _project_file(root)
    file, tree = written.file, written.tree
    name = text_of(tree, "name")
    if not name:
        raise ProjectError([error("missing-key", "Missing key 'name' in dbt_project.yml", file.line_span(1))])
    chosen = read_target((*profiles, root), text_of(tree, "profile"), target, env)
    if schema:
        chosen = DbtTarget(name=chosen.name, schema=schema, adapter=chosen.adapter, known=chosen.known)
    report: list[Diagnostic] = list(repeated)
    output = root / (text_of(tree, "target-path") or "target")
    outside: list[Span] = []
    paths = {kind: _paths(tree, default, keys, outside) for kind, (default, keys, _) in PATHS.items()}
    lists = {kind: list_files(root, paths[kind], without=output) for kind in PATHS}
    files = {kind: tuple(_texts(root, lists[kind], suffixes, report)) for kind, (_, _, suffixes) in PATHS.items()}
    docs_paths = _paths(tree, "", ("docs-paths",), outside) if get(tree, "docs-paths") else ()
    main = [f for kind in ("model", "seed") for f in lists[kind].files]
    other = [f for kind in PATHS if kind not in ("model", "seed") for f in lists[kind].files if f.path not in {m.path for m in main}]
    return DbtProject(
        root=root,
        file=file,
        tree=tree,
        is_rewritten=written.is_rewritten,
        name=name,
        target=chosen,
        paths=paths,
        outside=tuple(outside),
        vars=_vars(tree, name, vars, env, chosen),
        own_vars=of_every_run(_vars(tree, name, {}, env, chosen)),
        given_vars=vars,
        env=env,
        files=files,
        folders={kind: listing.folders for kind, listing in lists.items()},
        yamls=tuple(_yamls(root, main, report)),
        other_yamls=tuple(_yamls(root, other, report)),
        docs=tuple(_docs(root, (*main, *other, *list_files(root, docs_paths, without=output).files), report)),
        selectors=tuple(_selectors(root, report)),
        docs_paths=docs_paths,
        unreadable=tuple(report),
    )


def _docs(root: Path, files: Iterable[Found], report: list[Diagnostic]) -> Iterator[DbtFile]:
    each = tuple({found.path: found for found in files}.values())
    return (one for one in _texts(root, Listing(each, frozenset()), (".md",), report) if _DOCS_BLOCK.search(one.file.text))


def _selectors(root: Path, report: list[Diagnostic]) -> Iterator[SourceFile]:
    for name in SELECTORS:
        if (root / name).is_file():
            try:
                yield read_text(root, name)
            except ProjectError as exc:
                report.extend(exc.diagnostics)


def get(node: Node | None, key: str) -> Node | None:
    entry = node.get(key) if isinstance(node, MapNode) else None
    return entry.node if entry else None


def text_of(node: Node | None, key: str) -> str | None:
    value = get(node, key)
    return value.value if isinstance(value, ScalarNode) and isinstance(value.value, str) else None


def items_of(node: Node | None, key: str) -> tuple[Node, ...]:
    value = get(node, key)
    return value.items if isinstance(value, ListNode) else ()


def entries_of(node: Node | None) -> tuple[Entry, ...]:
    return node.entries if isinstance(node, MapNode) else ()


def _project_file(root: Path) -> tuple[YamlFile, tuple[Diagnostic, ...]]:
    if not (root / "dbt_project.yml").is_file():
        raise ProjectError(
            [error("not-a-project", f"There is no dbt_project.yml in {root}", help="Pass the directory of the dbt project.")]
        )
    file = read_text(root, "dbt_project.yml")
    tree, wrong = read_yaml(file, last_wins=True)
    if any(d.code != "duplicate-key" for d in wrong):
        raise ProjectError(wrong)
    if not isinstance(tree, MapNode):
        raise ProjectError([error("wrong-type", "dbt_project.yml must be a mapping", file.line_span(1))])
    return YamlFile(file=file, tree=tree, is_rewritten=bool(wrong)), wrong


def _paths(tree: MapNode, default: str, keys: tuple[str, ...], outside: list[Span]) -> tuple[str, ...]:
    """The configured folders inside the project. The places of the others are added to `outside`."""
    node = next((n for key in keys if (n := get(tree, key)) is not None), None)
    items = node.items if isinstance(node, ListNode) else (node,)
    texts = [(item.value, item.span) for item in items if isinstance(item, ScalarNode) and isinstance(item.value, str)]
    outside += (span for value, span in texts if not is_inside(value))
    return tuple(value for value, _ in texts if is_inside(value)) or (default,)


def is_of_run(value: Any) -> bool:
    """Whether a value still has a template after those that YAML can have were rendered: it is another one in each run."""
    if isinstance(value, list):
        return any(map(is_of_run, value))
    return isinstance(value, str) and is_template(value)


def of_every_run(vars: Mapping[str, Any]) -> dict[str, Any]:
    """The variables without those of one run, and mappings without such values: a package's variables are a mapping."""
    return {key: of_every_run(value) if isinstance(value, Mapping) else value for key, value in vars.items() if not is_of_run(value)}


def _names_of(target: DbtTarget) -> SimpleNamespace:
    return SimpleNamespace(name=target.name, schema=target.schema, type=target.adapter)


def _vars(tree: MapNode, name: str, given: Mapping[str, Any], env: Mapping[str, str], target: DbtTarget) -> Mapping[str, Any]:
    node = get(tree, "vars")
    values = plain(_rendered(node, Interpolation(env, given, {"target": _names_of(target)}))) if isinstance(node, MapNode) else {}
    own = values.get(name)
    if isinstance(own, dict):
        values = {**{k: v for k, v in values.items() if k != name}, **own}
    return {**values, **given}


def _texts(root: Path, listing: Listing, suffixes: tuple[str, ...], report: list[Diagnostic]) -> Iterator[DbtFile]:
    for found in listing.files:
        if found.suffix in suffixes:
            try:
                yield DbtFile(found=found, file=read_text(root, found.path))
            except ProjectError as exc:
                report.extend(exc.diagnostics)


def _yamls(root: Path, found: list[Found], report: list[Diagnostic]) -> Iterator[YamlFile]:
    for path in dict.fromkeys(f.path for f in found if f.suffix in (".yml", ".yaml")):
        try:
            file = read_text(root, path)
        except ProjectError as exc:
            report.extend(exc.diagnostics)
            continue
        tree, wrong = read_yaml(file, last_wins=True)
        repeated = tuple(d for d in wrong if d.code == "duplicate-key")
        report.extend(wrong)
        if isinstance(tree, MapNode) and len(repeated) == len(wrong):
            yield YamlFile(file=file, tree=tree, is_rewritten=bool(repeated))


def _rendered(node: Node, interpolation: Interpolation) -> Node:
    if isinstance(node, MapNode):
        return MapNode(tuple(Entry(e.key, e.span, _rendered(e.node, interpolation)) for e in node.entries), node.span)
    if isinstance(node, ListNode):
        return ListNode(tuple(_rendered(item, interpolation) for item in node.items), node.span)
    if not isinstance(node.value, str) or not is_template(node.value):
        return node
    found = interpolation.render(node)
    failed = bool(interpolation.diagnostics)
    interpolation.diagnostics.clear()
    return node if failed else found
