"""YAML tree + changes -> MappedText: the file with only those keys, items and values changed; checked by reading it again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml

from mvbuild.dbt.drafts import Draft
from mvbuild.project.yaml_spans import Entry, ListNode, MapNode, Node, plain, read_yaml
from mvbuild.source import MappedText, Segment, SourceFile, SourceMap, Span


class YamlDraft:
    """Collects removals, replacements and insertions. If the text cannot be edited in place, the file is written from the tree."""

    def __init__(self, file: SourceFile, tree: MapNode, *, is_rewritten: bool = False) -> None:
        """`is_rewritten`: the text differs from the tree, so it is written from the tree even without changes."""
        self.file = file
        self.tree = tree
        self._is_rewritten = is_rewritten
        self._removed: set[int] = set()
        self._values: dict[int, Any] = {}
        self._inserted: dict[int, dict[str, Any]] = {}

    def remove(self, part: Entry | Node) -> None:
        """Remove an entry of a mapping with its value, or an item of a list."""
        self._removed.add(id(part))

    def is_removed(self, part: Entry | Node) -> bool:
        return id(part) in self._removed

    def replace(self, node: Node, value: Any) -> None:
        self._values[id(node)] = value

    def insert(self, path: tuple[str, ...], value: Any) -> None:
        """Set a value below a path of keys, at the deepest existing mapping of the path."""
        node: MapNode = self.tree
        rest = list(path)
        while len(rest) > 1:
            entry = node.get(rest[0])
            if entry is None or not isinstance(entry.node, MapNode) or self.is_removed(entry):
                break
            node = entry.node
            rest.pop(0)
        added = self._inserted.setdefault(id(node), {})
        for key in rest[:-1]:
            added = added.setdefault(key, {})
        added[rest[-1]] = value

    @property
    def is_changed(self) -> bool:
        return bool(self._removed or self._values or self._inserted or self._is_rewritten)

    def result(self) -> MappedText | None:
        """The text; None if nothing is left in the file."""
        if not self.is_changed:
            return MappedText.of(self.file)
        wanted = self._plain(self.tree)
        if wanted is _GONE or not wanted:
            return None
        found = None if self._is_rewritten else self._edited()
        if found is not None and _value_of(found.text) == wanted:
            return found
        text = yaml.safe_dump(wanted, sort_keys=False, allow_unicode=True, width=120)
        whole = Span(self.file, 0, min(1, len(self.file.text)))
        return MappedText(text, SourceMap((Segment(0, whole, verbatim=False),)))

    # The new content of the file

    def _plain(self, node: Node) -> Any:
        if id(node) in self._removed:
            return _GONE
        if id(node) in self._values:
            return self._values[id(node)]
        if isinstance(node, ListNode):
            items = [v for item in node.items if (v := self._plain(item)) is not _GONE]
            return items if items or not node.items else _GONE
        if isinstance(node, MapNode):
            values = {e.key: v for e in node.entries if id(e) not in self._removed and (v := self._plain(e.node)) is not _GONE}
            values.update(_merged(values, self._inserted.get(id(node), {})))
            return values if values or not node.entries else _GONE
        return plain(node)

    # The text

    def _edited(self) -> MappedText | None:
        draft = Draft(self.file)
        self._edit(self.tree, draft)
        return draft.result

    def _edit(self, node: Node, draft: Draft) -> None:
        if isinstance(node, MapNode):
            gone = [id(e) in self._removed or self._plain(e.node) is _GONE for e in node.entries]
            places = [(e.span.start, e.node.span.end if e.node.span.end > e.span.end else e.span.end) for e in node.entries]
            self._cut(places, gone, draft)
            for entry, is_gone in zip(node.entries, gone, strict=True):
                if is_gone:
                    continue
                if id(entry.node) in self._values:
                    draft.replace(entry.node.span.start, entry.node.span.end, _written(self._values[id(entry.node)], entry, self.file))
                else:
                    self._edit(entry.node, draft)
            if id(node) in self._inserted and node.entries:
                draft.insert(*self._insertion(node))
        elif isinstance(node, ListNode):
            gone = [self._plain(item) is _GONE for item in node.items]
            self._cut([(_item_start(item, self.file.text), item.span.end) for item in node.items], gone, draft)
            for item, is_gone in zip(node.items, gone, strict=True):
                if not is_gone and id(item) in self._values:
                    draft.replace(item.span.start, item.span.end, json.dumps(self._values[id(item)], ensure_ascii=False))
                elif not is_gone:
                    self._edit(item, draft)

    def _cut(self, places: list[tuple[int, int]], gone: list[bool], draft: Draft) -> None:
        """Parts of one collection: each with its lines if nothing else is on them, otherwise up to the next part."""
        text = self.file.text
        for i, (start, end) in enumerate(places):
            if not gone[i]:
                continue
            line_start = text.rfind("\n", 0, start) + 1
            line_end = text.find("\n", end)
            line_end = len(text) if line_end < 0 else line_end
            rest = text[end:line_end].strip()
            if not text[line_start:start].strip() and (not rest or rest.startswith("#")):
                draft.replace(line_start, min(line_end + 1, len(text)), "")
            elif i + 1 < len(places):
                draft.replace(start, places[i + 1][0], "")
            elif i and not gone[i - 1]:
                draft.replace(places[i - 1][1], end, "")
            else:
                draft.replace(start, end, "")

    def _insertion(self, node: MapNode) -> tuple[int, str]:
        """Where a block mapping ends, and the new lines."""
        text = self.file.text
        first = node.entries[0].span.start
        indent = first - (text.rfind("\n", 0, first) + 1)
        end = text.find("\n", max(e.node.span.end if e.node.span.end > e.span.end else e.span.end for e in node.entries))
        dumped = yaml.safe_dump(self._inserted[id(node)], sort_keys=False, allow_unicode=True, width=120)
        lines = "".join(f"{' ' * indent}{line}\n" for line in dumped.splitlines())
        if end < 0:
            return len(text), ("" if text.endswith("\n") else "\n") + lines
        return end + 1, lines


_GONE = object()


def _merged(values: dict[str, Any], added: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in added.items():
        old = values.get(key)
        yield key, ({**old, **dict(_merged(old, value))} if isinstance(old, dict) and isinstance(value, dict) else value)


def _item_start(item: Node, text: str) -> int:
    """The dash of a block item, or where a flow item begins."""
    start = item.span.start
    line = text.rfind("\n", 0, start) + 1
    before = text[line:start].rstrip()
    return line + len(before) - 1 if before.endswith("-") and not before[:-1].strip() else start


def _written(value: Any, entry: Entry, file: SourceFile) -> str:
    """A new scalar: text with several lines as a block, everything else in one line."""
    if not (isinstance(value, str) and "\n" in value):
        return json.dumps(value, ensure_ascii=False) if not isinstance(value, str) or _needs_quotes(value) else value
    start = entry.span.start
    indent = " " * (start - (file.text.rfind("\n", 0, start) + 1) + 2)
    block = "|-\n" + "\n".join(indent + line if line.strip() else "" for line in value.split("\n"))
    return (
        block if value == value.strip() and _value_of(f"k: {_dedented(value)}") == {"k": value} else json.dumps(value, ensure_ascii=False)
    )


def _dedented(value: str) -> str:
    return "|-\n" + "\n".join(f"  {line}" if line.strip() else "" for line in value.split("\n"))


def _needs_quotes(value: str) -> bool:
    return bool(_value_of(f"k: {value}") != {"k": value})


def _value_of(text: str) -> Any:
    tree, wrong = read_yaml(SourceFile("check", text))
    return plain(tree) if tree is not None and not wrong else None
