"""mvbuild.yml -> ProjectFile: its tree rendered and checked, its paths, vars and target."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from os.path import isdir
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, error, warning
from mvbuild.project import targets
from mvbuild.project.files import read_text
from mvbuild.project.folders import layer_of
from mvbuild.project.key_types import check
from mvbuild.project.keys import IGNORED_OF_DBT, PROJECT
from mvbuild.project.loaded import NAMESPACE_RULES, NamespaceRule, Publish, Target
from mvbuild.project.setting import Layer
from mvbuild.project.target_names import TargetNames
from mvbuild.project.yaml_spans import Entry, ListNode, MapNode, Node, ScalarNode, has_templates, is_empty, is_template, plain, read_yaml
from mvbuild.source import SourceFile

if TYPE_CHECKING:
    from mvbuild.project.interpolate import Interpolation

NAMES = ("mvbuild.yml", "mvbuild.yaml", "dbt_project.yml")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_TARGET = re.compile(r"\btarget\b")
_SEPARATE = ("vars", "targets", "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    file: SourceFile
    name: str
    version: str | None
    paths: Mapping[str, tuple[str, ...]]
    target_path: str
    publish: Publish
    vars: Mapping[str, Any]
    target: Target
    target_names: tuple[str, ...]
    lint: Layer
    warnings: tuple[Diagnostic, ...]
    models: Node | None
    """Folder configuration of models; `seeds` is that of seeds."""
    seeds: Node | None


@dataclass(slots=True)
class Templates:
    """env_var(), var() and `target` for all YAML files. Jinja is imported for the first text with a `{{`."""

    env: Mapping[str, str]
    vars: Mapping[str, Any]
    report: list[Diagnostic]
    target: Target | None = None
    """None until it is chosen."""
    _interpolation: Interpolation | None = None

    def render(self, node: Node, text: str, keep: frozenset[str] = frozenset()) -> Node:
        if "{{" not in text or not has_templates(node, keep):
            return node
        if self._interpolation is None:
            from mvbuild.project.interpolate import Interpolation

            names = {"target": TargetNames.of(self.target)} if self.target else {}
            self._interpolation = Interpolation(self.env, self.vars, names)
        try:
            return self._interpolation.render(node, keep=keep)
        finally:
            self.report.extend(self._interpolation.diagnostics)
            self._interpolation.diagnostics.clear()


def read_project_file(
    root: Path,
    *,
    target: str | None,
    vars: Mapping[str, Any],
    env: Mapping[str, str],
    threads: int | None,
    report: list[Diagnostic],
) -> tuple[ProjectFile, Templates]:
    """Raises ProjectError if nothing of the project can be read without it; other errors go to `report`."""
    file, tree = _tree(root, report)
    declared, of_target = _declared_vars(tree, vars)
    given = {**_values(declared, Templates(env, vars, report), file.text), **vars}
    templates = Templates(env, given, report)
    if target is None and (default := tree.get("target")):
        tree = _with(tree, "target", templates.render(default.node, file.text))
    chosen = targets.choose_target(file, tree, target, tree.get("target"))
    tree = _with_target(tree, chosen, templates, file.text)
    used = targets.target_of(root, _chosen(tree, chosen), threads, report)
    given = {
        **given,
        **_values(of_target, Templates(env, given, report, used), file.text),
        **targets.vars_of(_chosen(tree, chosen)),
        **vars,
    }
    templates = Templates(env, given, report, used)
    tree = _rendered(tree, templates, file.text)
    used = replace(used, namespaces=_namespaces(tree, report))
    ignored = IGNORED_OF_DBT if file.path == "dbt_project.yml" else ()
    report.extend(check(tree, PROJECT, ignored=ignored, later=True))
    return ProjectFile(
        file=file,
        name=_name(tree, report),
        version=_version(tree),
        paths={
            **{key: _paths(tree, f"{key}-paths", key + "s") for key in ("model", "seed", "macro", "test")},
            "docs": _paths(tree, "docs-paths", "docs") if _node(tree, "docs-paths") else (),
        },
        target_path=_text(tree, "target-path") or "target",
        publish=_publish(tree, report),
        vars=MappingProxyType(given),
        target=used,
        target_names=targets.names(tree) or (targets.DEFAULT_NAME,),
        lint=layer_of(_node(tree, "lint")),
        warnings=tuple(_missing_folders(root, tree)),
        models=_node(tree, "models"),
        seeds=_node(tree, "seeds"),
    ), templates


def has_project(root: Path) -> bool:
    """Whether a directory has a project file, whatever it contains."""
    return any((root / name).is_file() for name in NAMES)


def _tree(root: Path, report: list[Diagnostic]) -> tuple[SourceFile, MapNode]:
    file = read_text(root, name_in(root))
    tree, wrong = read_yaml(file)
    if tree is None and not wrong:
        wrong = (error("missing-key", "Missing key 'name' in mvbuild.yml", file.line_span(1)),)
    elif tree is not None and not isinstance(tree, MapNode):
        wrong = (*wrong, error("wrong-type", "mvbuild.yml must be a mapping", tree.span))
    if not isinstance(tree, MapNode):
        raise ProjectError(wrong)
    report.extend(wrong)
    return file, tree


def name_in(root: Path) -> str:
    """The name of the project file in a directory. Raises ProjectError if there is none."""
    name = next((name for name in NAMES if (root / name).is_file()), None)
    if name is None:
        raise ProjectError([_no_project(root)])
    return name


def _no_project(root: Path) -> Diagnostic:
    if root.is_dir():
        above = next((folder for folder in root.resolve().parents if any((folder / name).is_file() for name in NAMES)), None)
        help = f"You are in a folder of the project {above}. Run the command there, or use --project-dir." if above else ""
        return error("not-a-project", f"There is no mvbuild.yml in {root}", help=help)
    message = f"{root} is not a directory" if root.exists() else f"The directory {root} does not exist"
    return error("not-a-project", message, help="Choose the project's directory with --project-dir.")


def _declared_vars(tree: MapNode, given: Mapping[str, Any]) -> tuple[MapNode, MapNode]:
    """The vars of the project: those that can be rendered before a target is chosen, and those that name it. What is given on the command
    line is left out, with its templates. dbt's form, with the project's name above them, is accepted."""
    node, name = _node(tree, "vars"), _text(tree, "name")
    entries = {entry.key: entry for entry in node.entries} if isinstance(node, MapNode) else {}
    below = entries.get(name).node if name in entries else None  # type: ignore[union-attr]
    if isinstance(below, MapNode):
        entries = {**{key: entry for key, entry in entries.items() if key != name}, **{entry.key: entry for entry in below.entries}}
    entries = {key: entry for key, entry in entries.items() if key not in given}
    later = {key for key, entry in entries.items() if _names_target(entry.node)}
    parts = [tuple(entry for key, entry in entries.items() if (key in later) == is_later) for is_later in (False, True)]
    return MapNode(parts[0], tree.span), MapNode(parts[1], tree.span)


def _names_target(node: Node) -> bool:
    if isinstance(node, MapNode):
        return any(_names_target(entry.node) for entry in node.entries)
    if isinstance(node, ListNode):
        return any(map(_names_target, node.items))
    return isinstance(node.value, str) and is_template(node.value) and _TARGET.search(node.value) is not None


def _values(vars: MapNode, templates: Templates, text: str) -> dict[str, Any]:
    found: dict[str, Any] = plain(templates.render(vars, text))
    return found


def _namespaces(tree: MapNode, report: list[Diagnostic]) -> NamespaceRule:
    entry, value = tree.get("namespaces"), _text(tree, "namespaces")
    for rule in NAMESPACE_RULES:
        if value in (None, rule):
            return rule
    message = f"'namespaces' must be {', '.join(NAMESPACE_RULES[:-1])} or {NAMESPACE_RULES[-1]}"
    report.append(error("wrong-type", message, entry.node.span if entry else None))
    return NAMESPACE_RULES[0]


def _with_target(tree: MapNode, chosen: Entry | None, templates: Templates, text: str) -> MapNode:
    """Render only the chosen target: the others may need environment variables that are not set."""
    declared = _node(tree, "targets")
    if chosen is None or not isinstance(declared, MapNode):
        return tree
    return _with(tree, "targets", _with(declared, chosen.key, templates.render(chosen.node, text)))


def _rendered(tree: MapNode, templates: Templates, text: str) -> MapNode:
    """Everything except vars and targets."""
    return MapNode(
        tuple(e if e.key in _SEPARATE else Entry(e.key, e.span, templates.render(e.node, text)) for e in tree.entries), tree.span
    )


def _with(tree: MapNode, key: str, node: Node) -> MapNode:
    return MapNode(tuple(Entry(e.key, e.span, node) if e.key == key else e for e in tree.entries), tree.span)


def _chosen(tree: MapNode, chosen: Entry | None) -> Entry | None:
    declared = _node(tree, "targets")
    return declared.get(chosen.key) if chosen and isinstance(declared, MapNode) else None


def _name(tree: MapNode, report: list[Diagnostic]) -> str:
    name = _text(tree, "name")
    entry = tree.get("name")
    if entry and name is not None and not _IDENTIFIER.match(name):
        help = "Use letters, digits and underscores, and start with a letter."
        report.append(error("wrong-type", "'name' must be an identifier", entry.node.span, help=help))
    return name or ""


def _publish(tree: MapNode, report: list[Diagnostic]) -> Publish:
    entry, value = tree.get("publish"), _text(tree, "publish")
    if value is None or value == "each":
        return "each"
    if value != "atomic":
        report.append(error("wrong-type", "'publish' must be each or atomic", entry.node.span if entry else None))
    return "atomic"


def _version(tree: MapNode) -> str | None:
    node = _node(tree, "version")
    return str(node.value) if isinstance(node, ScalarNode) and node.value is not None else None


def _paths(tree: MapNode, key: str, default: str) -> tuple[str, ...]:
    node = _node(tree, key)
    if node is None or is_empty(node):
        return (default,)
    value = plain(node)
    return tuple(v for v in (value if isinstance(value, list) else [value]) if isinstance(v, str))


def _missing_folders(root: Path, tree: MapNode) -> Iterator[Diagnostic]:
    """Folders that only this project's mvbuild.yml names. Of the usual ones, many projects have only some and name all."""
    for kind in ("model", "seed", "macro", "test", "docs"):
        node = _node(tree, f"{kind}-paths")
        for item in node.items if isinstance(node, ListNode) else (node,):
            if not isinstance(item, ScalarNode) or not isinstance(item.value, str):
                continue
            if item.value.rstrip("/") != f"{kind.removesuffix('s')}s" and not isdir(root / item.value):  # noqa: PTH112 - never raises
                # Without its name, which may come from the environment.
                help = "Fix the path, which starts at the folder of mvbuild.yml, or make the folder."
                yield warning("unknown-name", f"This folder of `{kind}-paths` does not exist", item.span, help=help)


def _node(tree: MapNode, key: str) -> Node | None:
    entry = tree.get(key)
    return entry.node if entry else None


def _text(tree: MapNode, key: str) -> str | None:
    node = _node(tree, key)
    return node.value if isinstance(node, ScalarNode) and isinstance(node.value, str) else None
