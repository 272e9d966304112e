"""SourceFile of YAML -> tree of ScalarNode, ListNode and MapNode: plain values, each with the place where it was written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note, error
from mvbuild.source import SourceFile, Span

DEEPEST = 100
MOST_ALIASED = 100_000
MOST_NODES = 750_000
LONGEST_VALUE = 500
MOST_MISTAKES = 500
_SAFE_DEPTH = 1000  # libyaml composes by recursion in C and crashes the process somewhere above 10,000 levels
_INDENTED = re.compile(rf"^[ \t?-]{{{_SAFE_DEPTH},}}", re.MULTILINE)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAG = "tag:yaml.org,2002:"
_TEXT = _TAG + "str"
_SCALAR_TAGS = frozenset(_TAG + name for name in ("null", "bool", "int", "float", "timestamp", "str", "merge", "value"))
_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SAFE):  # type: ignore[misc]
    """The same words occur again and again, and PyYAML matches each of them with the patterns of numbers, dates and so on."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._tags: dict[str, Any] = {}

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is not yaml.ScalarNode or not implicit[0]:
            return super().resolve(kind, value, implicit)
        tag = self._tags.get(value)
        if tag is None:
            tag = self._tags[value] = super().resolve(kind, value, implicit)
        return tag


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One value: str, int, float, bool, date, datetime or None. `rendered`: it came from a template and may be a secret."""

    value: Any
    span: Span
    rendered: bool = False


@dataclass(frozen=True, slots=True)
class ListNode:
    items: tuple[Node, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a mapping and its value. `span` is of the key."""

    key: str
    span: Span
    node: Node


@dataclass(frozen=True, slots=True)
class MapNode:
    """Entries in the order of the file, with merge keys (`<<`) resolved and each key once."""

    entries: tuple[Entry, ...]
    span: Span

    def get(self, key: str) -> Entry | None:
        for entry in self.entries:
            if entry.key == key:
                return entry
        return None


Node = ScalarNode | ListNode | MapNode


def read_yaml(file: SourceFile, *, last_wins: bool = False) -> tuple[Node | None, tuple[Diagnostic, ...]]:
    """The document of a file; None if it is empty, or if its syntax is wrong, which diagnostics report. A duplicate key is an error; with
    `last_wins` its last value is taken, as by other readers of YAML."""
    unprintable = _UNPRINTABLE.search(file.text)
    if unprintable:
        span = Span(file, unprintable.start(), unprintable.end())
        return None, (error("yaml-syntax", f"YAML must not contain the character U+{ord(unprintable[0]):04X}", span),)
    try:
        too_deep = _too_much(file)
        root = None if too_deep else yaml.compose(file.text, Loader=_Loader)
    except yaml.MarkedYAMLError as exc:
        return None, (_syntax_error(file, exc),)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None, (error("yaml-syntax", "The file is not valid YAML", file.line_span(1)),)
    if too_deep or root is None:
        return None, too_deep
    builder = _Builder(file, last_wins=last_wins)
    try:
        return builder.node(root, 0), tuple(builder.diagnostics)
    except _Hopeless:
        return None, tuple(builder.diagnostics)


def plain(node: Node) -> Any:
    """The value as scalars, lists and dicts."""
    if isinstance(node, ScalarNode):
        return node.value
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return {entry.key: plain(entry.node) for entry in node.entries}


def node_of(value: Any, span: Span) -> Node:
    """Plain values (of a template) as a tree whose parts all have the place `span`."""
    if isinstance(value, Mapping):
        return MapNode(tuple(Entry(str(k), span, node_of(v, span)) for k, v in value.items()), span)
    if isinstance(value, (list, tuple)):
        return ListNode(tuple(node_of(v, span) for v in value), span)
    return ScalarNode(value, span, rendered=True)


def has_templates(node: Node, keep: frozenset[str] = frozenset()) -> bool:
    """Whether a scalar below the node, except below the keys of `keep`, is a template."""
    if isinstance(node, MapNode):
        return any(entry.key not in keep and has_templates(entry.node, keep) for entry in node.entries)
    if isinstance(node, ListNode):
        return any(has_templates(item, keep) for item in node.items)
    return isinstance(node.value, str) and is_template(node.value)


def is_template(text: str) -> bool:
    return "{{" in text or "{%" in text


def is_empty(node: Node | None) -> bool:
    """Nothing, or a key without a value."""
    return node is None or (isinstance(node, ScalarNode) and node.value is None)


class _Hopeless(Exception):
    """The rest of the document cannot be built; the reason has been recorded."""


class _Builder:
    """PyYAML's nodes -> ours. A node shared by several aliases is built once and counted each time."""

    def __init__(self, file: SourceFile, *, last_wins: bool) -> None:
        self.file = file
        self._last_wins = last_wins
        self.diagnostics: list[Diagnostic] = []
        self._built: dict[int, Node] = {}
        self._sizes: dict[int, int] = {}
        """The sizes of all nodes except scalars."""
        self._open: set[int] = set()
        self._size = 0
        self._aliased = 0
        self._constructor = yaml.constructor.SafeConstructor()

    def node(self, raw: Any, depth: int) -> Node:
        id_ = id(raw)
        if id_ in self._built:
            return self._again(raw, id_)
        if raw.__class__ is yaml.ScalarNode:
            self._size += 1
            scalar = self._built[id_] = ScalarNode(self._value(raw), self._span(raw))
            return scalar
        if id_ in self._open:
            self._stop(raw, "An anchor contains an alias of itself")
        if depth > DEEPEST:
            self._stop(raw, f"The YAML is nested more than {DEEPEST} levels deep")
        self._open.add(id_)
        before = self._size
        self._size += 1
        node = self._build(raw, depth)
        self._open.discard(id_)
        self._built[id_], self._sizes[id_] = node, self._size - before
        return node

    def _again(self, raw: Any, id_: int) -> Node:
        size = self._sizes.get(id_, 1)
        self._aliased += size
        self._size += size
        if self._aliased > MOST_ALIASED:
            self._stop(raw, f"Aliases repeat more than {MOST_ALIASED:,} values")
        return self._built[id_]

    def _build(self, raw: Any, depth: int) -> Node:
        if raw.tag not in (_TAG + "map", _TAG + "seq"):
            self._report(raw, f"Unknown tag '{_short(raw.tag)}'")
        if isinstance(raw, yaml.MappingNode):
            entries = self._entries(raw, depth)
            return MapNode(entries, self._span(raw, entries[-1].node if entries else None))
        items = tuple(self.node(item, depth + 1) for item in raw.value)
        return ListNode(items, self._span(raw, items[-1] if items else None))

    def _entries(self, raw: Any, depth: int) -> tuple[Entry, ...]:
        written: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for raw_key, raw_value in raw.value:
            if raw_key.tag == _TAG + "merge":
                for entry in self._merged(raw_value, depth):
                    merged.setdefault(entry.key, entry)
                continue
            key, span = self._key(raw_key, depth)
            value = self.node(raw_value, depth + 1)
            if key is None:
                help = "Put it in quotes: YAML converts yes, no, on, off, numbers and dates to other values."
                self._say(error("wrong-type", "A key must be a string", span, help=help))
            elif key in written:
                notes = (Note(message="first defined here", span=written[key].span),)
                self._say(error("duplicate-key", f"Duplicate key '{key}'", span, notes=notes))
            if key is not None and (key not in written or self._last_wins):
                written[key] = Entry(key, span, value)
        return (*written.values(), *(e for k, e in merged.items() if k not in written)) if merged else tuple(written.values())

    def _key(self, raw: Any, depth: int) -> tuple[str | None, Span]:
        """None for a key that is not text."""
        if raw.__class__ is yaml.ScalarNode and raw.tag == _TEXT:
            self._size += 1
            return raw.value, self._span(raw)
        key = self.node(raw, depth + 1)
        return (key.value if isinstance(key, ScalarNode) and isinstance(key.value, str) else None), key.span

    def _merged(self, raw: Any, depth: int) -> Iterator[Entry]:
        node = self.node(raw, depth + 1)
        for part in node.items if isinstance(node, ListNode) else (node,):
            if isinstance(part, MapNode):
                yield from part.entries
            else:
                self._say(error("wrong-type", "'<<' takes a mapping or a list of mappings", part.span))

    def _value(self, raw: Any) -> Any:
        if raw.tag == _TEXT:
            return raw.value
        if raw.tag not in _SCALAR_TAGS:
            self._report(raw, f"Unknown tag '{_short(raw.tag)}'")
            return raw.value
        if len(raw.value) > LONGEST_VALUE:
            self._report(raw, f"A {_short(raw.tag)} has more than {LONGEST_VALUE} characters", "Put it in quotes.")
            return raw.value
        try:
            return self._constructor.construct_object(raw) if raw.tag not in (_TAG + "merge", _TAG + "value") else raw.value
        except (yaml.YAMLError, ValueError, ArithmeticError, KeyError, IndexError, AttributeError):
            self._report(raw, f"This is not a valid {_short(raw.tag)}", "Fix it, or put it in quotes.")
            return raw.value

    def _span(self, raw: Any, last: Node | None = None) -> Span:
        """Where a node was written; a block collection ends with its last part, not with the comments and empty lines after it."""
        start, end, text = raw.start_mark.index, raw.end_mark.index, self.file.text
        if last is not None and not getattr(raw, "flow_style", False) and start <= last.span.end <= end:
            end = last.span.end
        while end > start and text[end - 1] in " \n":
            end -= 1
        return Span(self.file, start, end)

    def _say(self, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)
        if len(self.diagnostics) >= MOST_MISTAKES:
            self.diagnostics.append(error(diagnostic.code, f"{self.file.path} has more than {MOST_MISTAKES:,} errors", diagnostic.span))
            raise _Hopeless

    def _report(self, raw: Any, message: str, help: str = "") -> None:
        self._say(error("yaml-syntax", message, self._span(raw), help=help))

    def _stop(self, raw: Any, message: str) -> None:
        self._report(raw, message, "Write the values out, with less nesting.")
        raise _Hopeless


def _too_much(file: SourceFile) -> tuple[Diagnostic, ...]:
    """For texts that could be too deep for the recursion of the composer, or have too many nodes for the memory: check the parser's events
    one by one."""
    text = file.text
    brackets = text.count("[") + text.count("{")
    could_be_many = len(text) > MOST_NODES and brackets + sum(map(text.count, (",", ":", "-", "\n"))) > MOST_NODES
    if brackets < _SAFE_DEPTH and not could_be_many and not _INDENTED.search(text):
        return ()
    depth = nodes = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _SAFE_DEPTH // 2:
                start = event.start_mark.index if event.start_mark else 0
                span = Span(file, start, start + 1)
                return (error("yaml-syntax", f"The YAML is nested more than {DEEPEST} levels deep", span, help="Reduce the nesting."),)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        nodes += isinstance(event, yaml.NodeEvent)
        if nodes > MOST_NODES:
            return (error("file-too-large", f"{file.path} has more than {MOST_NODES:,} keys and values", file.line_span(1)),)
    return ()


def _syntax_error(file: SourceFile, exc: yaml.MarkedYAMLError) -> Diagnostic:
    mark = exc.problem_mark or exc.context_mark
    index = min(mark.index if mark else 0, len(file.text))
    while index > 0 and (index == len(file.text) or file.text[index] == "\n") and file.text[index - 1] in " \n":
        index -= 1
    span = Span(file, index, min(index + 1, len(file.text)))
    notes: tuple[Note, ...] = ()
    if exc.context_mark and exc.context and exc.context_mark.index != (mark.index if mark else -1):
        at = min(exc.context_mark.index, len(file.text))
        notes = (Note(message=str(exc.context), span=Span(file, at, min(at + 1, len(file.text)))),)
    problem = str(exc.problem or exc.context or "syntax error")
    if "cannot start any token" in problem and file.text[index : index + 1] == "\t":
        problem = "a tab cannot indent a line, spaces can"
    if "single document" in str(exc.context):
        problem = "the file contains more than one document"
    return error("yaml-syntax", f"The YAML cannot be parsed: {problem}", span, notes=notes)


def _short(tag: str) -> str:
    return tag.removeprefix(_TAG)
