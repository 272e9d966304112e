"""`models:` and `seeds:` of the project file -> the layers of each folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import field

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, did_you_mean, error
from mvbuild.project.setting import Layer, Setting
from mvbuild.project.yaml_spans import Entry, ListNode, MapNode, Node, is_empty, plain

Folders = tuple[str, ...]


def setting_of(node: Node, key: Entry | None = None) -> Setting:
    """A node as a setting: its plain value, its place and the places of its parts."""
    inner: dict[str | int, Setting] = {}
    if isinstance(node, MapNode):
        inner = {entry.key: setting_of(entry.node, entry) for entry in node.entries}
    elif isinstance(node, ListNode):
        inner = {i: setting_of(item) for i, item in enumerate(node.items)}
    return Setting(plain(node), node.span, key.span if key else None, inner)


def layer_of(node: Node | None) -> Layer:
    """A `config:` block; keys may have dbt's `+`."""
    entries = node.entries if isinstance(node, MapNode) else ()
    return {entry.key.removeprefix("+"): setting_of(entry.node, entry) for entry in entries}


def repeated_settings(node: Node | None) -> Iterator[Diagnostic]:
    """Settings that appear in one block with and without a `+`."""
    entries = node.entries if isinstance(node, MapNode) else ()
    plain_keys = {entry.key for entry in entries}
    for entry in entries:
        if entry.key.startswith("+") and entry.key[1:] in plain_keys:
            yield error("duplicate-key", f"Duplicate key '{entry.key[1:]}', with and without a '+'", entry.span)


@dataclass(slots=True, kw_only=True)
class FolderLayers:
    """Folder, or folder and file name -> its layers, the farthest first."""

    layers: dict[Folders, list[Layer]] = field(default_factory=dict)

    def of(self, folders: Folders, name: str) -> tuple[Layer, ...]:
        """The layers of a file, from the outermost folder to the file's own."""
        if not self.layers:
            return ()
        path = (*folders, name)
        return tuple(layer for depth in range(len(path) + 1) for layer in self.layers.get(path[:depth], ()))


def read_folders(
    node: Node | None, *, project: str, known: Collection[Folders], settings: Collection[str], report: list[Diagnostic]
) -> FolderLayers:
    """`known` are the existing folders, and the files as if they were folders. The project's name may be the outermost level."""
    found = FolderLayers()
    if isinstance(node, MapNode):
        _read(node, (), _Rules(project=project, known=frozenset(known), settings=frozenset(settings), report=report), found, at_top=True)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    project: str
    known: frozenset[Folders]
    settings: frozenset[str]
    report: list[Diagnostic]


def _read(node: MapNode, here: Folders, rules: _Rules, found: FolderLayers, *, at_top: bool = False) -> None:
    rules.report.extend(repeated_settings(node))
    layer: dict[str, Setting] = {}
    below: list[tuple[Entry, Folders]] = []
    for entry in node.entries:
        key = entry.key
        if key.startswith("+"):
            layer[key[1:]] = setting_of(entry.node, entry)
        elif at_top and key == rules.project:
            below.append((entry, here))
        elif (*here, key) in rules.known and (isinstance(entry.node, MapNode) or key not in rules.settings):
            below.append((entry, (*here, key)))
        elif key in rules.settings:
            layer[key] = setting_of(entry.node, entry)
        else:
            rules.report.append(_unknown(entry, here, rules, at_top))
    if layer:
        found.layers.setdefault(here, []).append(layer)
    for entry, folders in below:
        if isinstance(entry.node, MapNode):
            _read(entry.node, folders, rules, found)
        elif not is_empty(entry.node):
            rules.report.append(error("wrong-type", f"'{entry.key}' is a folder: its value must be a mapping of settings", entry.node.span))


def _unknown(entry: Entry, here: Folders, rules: _Rules, at_top: bool) -> Diagnostic:
    folders = {folder[-1] for folder in rules.known if folder[:-1] == here}
    names = {*folders, *(f"+{name}" for name in rules.settings), *rules.settings, *((rules.project,) if at_top else ())}
    where = "/".join(here) or "the project"
    message = f"'{entry.key}' is neither a folder in {where} nor a setting"
    return error("unknown-key", message, entry.span, help=did_you_mean(entry.key, names))
