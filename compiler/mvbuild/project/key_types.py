"""The types of the table of keys, and tree + table -> diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, did_you_mean, error
from mvbuild.project.yaml_spans import Entry, ListNode, MapNode, Node, ScalarNode, is_empty, is_template

Kind = Literal[
    "text",
    "scalar",
    "flag",
    "count",
    "texts",
    "namespace",
    "constants",
    "mapping",
    "any",
    "block",
    "blocks",
    "named blocks",
    "tests",
    "settings",
    "folders",
]

SAYS: Mapping[str, str] = {
    "text": "a string",
    "scalar": "a string or a number",
    "flag": "true or false",
    "count": "an integer above 0",
    "texts": "a string or a list of strings",
    "namespace": "a string like 'mart' or 'mart.daily', or a list of its levels",
    "constants": "a list of strings, numbers or booleans",
    "mapping": "a mapping",
    "block": "a mapping",
    "blocks": "a list of mappings",
    "named blocks": "a mapping of names to mappings",
    "tests": "a list of tests",
    "settings": "a mapping of settings",
    "folders": "a mapping of folders and settings",
}


@dataclass(frozen=True, slots=True)
class Key:
    """What is allowed under a key. `block` is the table of the mappings below it."""

    kind: Kind
    doc: str
    required: bool = False
    block: Block | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The keys of one kind of mapping. `what` names it in messages, `unsupported` has help for keys of dbt."""

    what: str
    keys: Mapping[str, Key]
    aliases: Mapping[str, str] = field(default_factory=dict)
    unsupported: Mapping[str, str] = field(default_factory=dict)


_NOT_RENDERED: frozenset[Kind] = frozenset(("mapping", "block", "blocks", "named blocks", "count"))


def check(node: Node, block: Block, *, ignored: tuple[str, ...] = (), later: bool = False) -> Iterator[Diagnostic]:
    """Every unknown, missing and badly typed key of a mapping and of what is below it, except settings, folders and tests. `later`: any
    template may still be rendered, as in targets that are not used; otherwise none that is left becomes a mapping or a count."""
    if not isinstance(node, MapNode):
        yield error("wrong-type", f"{block.what} must be a mapping", node.span)
        return
    seen: set[str] = set()
    for entry in node.entries:
        name = block.aliases.get(entry.key, entry.key)
        key = block.keys.get(name)
        if key is None:
            if entry.key not in ignored:
                yield unknown(entry, block)
        elif name in seen:
            yield error("duplicate-key", f"'{entry.key}' is an alias of a key that is also set", entry.span)
        else:
            seen.add(name)
            yield from _check_value(entry, key, later)
    for name, key in block.keys.items():
        if key.required and name not in seen:
            yield error("missing-key", f"Missing key '{name}' in {block.what}", node.span)


def unknown(entry: Entry, block: Block) -> Diagnostic:
    help = block.unsupported.get(entry.key) or did_you_mean(entry.key, (*block.keys, *block.aliases))
    return error("unknown-key", f"Unknown key '{entry.key}' in {block.what}", entry.span, help=help)


def _check_value(entry: Entry, key: Key, later: bool) -> Iterator[Diagnostic]:
    node = entry.node
    if is_empty(node) and not key.required:
        return
    wrong = _misfit(node, key.kind, later)
    if wrong is not None:
        empty = isinstance(wrong, ScalarNode) and isinstance(wrong.value, str) and not wrong.value.strip()
        help = "Put it in quotes." if key.kind in ("text", "texts") and isinstance(wrong, ScalarNode) and not empty else ""
        help = "If it comes from an environment variable, set the variable." if empty else help
        if key.kind in _NOT_RENDERED and isinstance(wrong, ScalarNode) and isinstance(wrong.value, str) and is_template(wrong.value):
            help = "Write the value itself: templates are not rendered here."
        yield error("wrong-type", f"'{entry.key}' must be {SAYS[key.kind]}{', and it is empty' if empty else ''}", wrong.span, help=help)
    elif key.block and key.kind == "block":
        yield from check(node, key.block, later=later)
    elif key.block and isinstance(node, ListNode):
        for item in node.items:
            yield from check(item, key.block, later=later)
    elif key.block and isinstance(node, MapNode):
        for inner in node.entries:
            if not is_empty(inner.node):
                yield from check(inner.node, key.block, later=later)


def _misfit(node: Node, kind: Kind, later: bool) -> Node | None:
    """The part of a value that does not fit its kind. Templates that are not rendered fit."""
    if kind in ("any", "constants"):
        return None
    if isinstance(node, ScalarNode) and isinstance(node.value, str) and is_template(node.value) and (later or kind not in _NOT_RENDERED):
        return None
    if kind in ("mapping", "block", "named blocks", "settings", "folders"):
        return None if isinstance(node, MapNode) else node
    if kind in ("blocks", "tests"):
        return None if isinstance(node, ListNode) else node
    if kind in ("texts", "namespace") and isinstance(node, ListNode):
        return next((item for item in node.items if not _is_text(item)), None if node.items or kind == "texts" else node)
    return None if isinstance(node, ScalarNode) and _fits(node, kind) else node


def _fits(node: ScalarNode, kind: Kind) -> bool:
    value = node.value
    if kind == "scalar":
        return isinstance(value, (str, int, float)) and not isinstance(value, bool)
    if kind == "flag":
        return isinstance(value, bool)
    if kind == "count":
        return count_of(node) is not None
    if kind == "namespace":
        return isinstance(value, str) and all(part.strip() for part in value.split("."))
    return _is_text(node)


def count_of(node: Node | None) -> int | None:
    """An integer above 0; a template returns it as text."""
    if not isinstance(node, ScalarNode):
        return None
    value = node.value
    if node.rendered and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _is_text(node: Node) -> bool:
    return isinstance(node, ScalarNode) and isinstance(node.value, str)
