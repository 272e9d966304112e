"""selectors.yml -> Selectors: named selections, each with its definition as an expression. dbt's format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error
from mvbuild.graph.model import Graph
from mvbuild.project.files import read_text
from mvbuild.project.target_names import TargetNames
from mvbuild.project.yaml_spans import Entry, ListNode, MapNode, Node, ScalarNode, has_templates, read_yaml
from mvbuild.selection.grammar import Criterion, Difference, Expression, Intersection, Union, criterion
from mvbuild.selection.methods import check
from mvbuild.source import Span

FILES = ("selectors.yml", "selectors.yaml")
_KEYS = ("name", "description", "default", "definition")
FLAGS = ("parents", "children", "childrens_parents")
DEPTHS = ("parents_depth", "children_depth")
_OF_METHOD = ("method", "value", *FLAGS, *DEPTHS, "indirect_selection", "exclude")
_SETS = ("union", "intersection")
_FORMS = "A definition is a string ('tag:daily+'), a method and its value, or one with method: and value:, union:, or intersection:."


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A selection with a name."""

    name: str
    definition: Expression
    default: bool
    span: Span


def read_selectors(graph: Graph) -> Mapping[str, Selector]:
    """The selectors of the project; none if it has no such file. Raises ProjectError with everything that is wrong in it."""
    root = graph.project.root
    path = next((name for name in FILES if (root / name).is_file()), None)
    if path is None:
        return {}
    file = read_text(root, path)
    tree, wrong = read_yaml(file)
    reader = _Reader(list(wrong))
    if tree is not None and not wrong:
        if has_templates(tree):
            # Imported here because most projects have no templates in YAML, and commands that render nothing start faster.
            from mvbuild.project.interpolate import Interpolation

            interpolation = Interpolation(graph.reading.env, graph.project.vars, {"target": TargetNames.of(graph.project.target)})
            tree = interpolation.render(tree)
            reader.report += interpolation.diagnostics
        reader.file(tree)
    if reader.report:
        raise ProjectError(reader.report)
    return reader.selectors


class _Reader:
    """Walks through the tree, and continues after errors."""

    def __init__(self, report: list[Diagnostic]) -> None:
        self.report = report
        self.selectors: dict[str, Selector] = {}

    def file(self, tree: Node) -> None:
        entries = {e.key: e for e in tree.entries} if isinstance(tree, MapNode) else {}
        self._unknown(entries, ("selectors", "version"))
        listed = entries.get("selectors")
        if listed is None or not isinstance(listed.node, ListNode):
            self._wrong("'selectors' must be a list of selectors", listed.node.span if listed else tree.span)
            return
        for item in listed.node.items:
            self._selector(item)
        defaults = [s for s in self.selectors.values() if s.default]
        for second in defaults[1:]:
            message = f"'{defaults[0].name}' is already the default; only one is allowed"
            self.report.append(error("bad-selectors", message, second.span))

    def _selector(self, node: Node) -> None:
        if not isinstance(node, MapNode):
            self._wrong("A selector must be a mapping with 'name' and 'definition'", node.span)
            return
        entries = {e.key: e for e in node.entries}
        self._unknown(entries, _KEYS)
        missing = [key for key in ("name", "definition") if key not in entries]
        if missing:
            self.report.append(error("missing-key", f"Missing key '{missing[0]}' in a selector", node.span))
            return
        name = self._text(entries["name"])
        definition = self._definition(entries["definition"].node)
        default = self._flag(entries["default"]) if "default" in entries else False
        if name in self.selectors:
            self.report.append(error("duplicate-name", f"Duplicate selector '{name}'", entries["name"].node.span))
        elif definition is not None and name:
            self.selectors[name] = Selector(name=name, definition=definition, default=default, span=entries["name"].node.span)

    def _definition(self, node: Node) -> Expression | None:
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            return self._criterion(lambda: criterion(node.value.strip(), node.span))
        if not isinstance(node, MapNode) or not node.entries:
            self._wrong(_FORMS, node.span)
            return None
        entries = {e.key: e for e in node.entries}
        for key in _SETS:
            if key in entries:
                return self._set(key, entries)
        if "method" in entries or "value" in entries:
            return self._method(entries, node.span)
        if len(entries) > 1:
            self._wrong(_FORMS, node.span)
            return None
        (entry,) = entries.values()
        if entry.key == "exclude":
            self._wrong("'exclude' must be in a union, in an intersection, or beside a method", entry.span)
            return None
        return self._criterion(lambda: _criterion(entry.key, self._value(entry), node.span))

    def _set(self, key: str, entries: Mapping[str, Entry]) -> Expression | None:
        """`union:` or `intersection:`, less what an `exclude:` among the parts names."""
        others = [e for k, e in entries.items() if k != key]
        if others:
            self._wrong(f"'{key}' cannot be combined with '{others[0].key}': move that into its list", others[0].span)
        listed = entries[key].node
        if not isinstance(listed, ListNode) or not listed.items:
            self._wrong(f"'{key}' must be a list of definitions", listed.span)
            return None
        excludes = [i for i in listed.items if isinstance(i, MapNode) and [e.key for e in i.entries] == ["exclude"]]
        parts = [self._definition(i) for i in listed.items if i not in excludes]
        for second in excludes[1:]:
            self._wrong("Only one 'exclude' is allowed in a list: merge the two", second.span)
        if not parts:
            self._wrong(f"'{key}' has nothing for 'exclude' to remove from", listed.span)
        known = tuple(p for p in parts if p is not None)
        whole: Expression = Union(parts=known) if key == "union" else Intersection(parts=known)
        return self._less(whole, excludes[0].entries[0]) if excludes and isinstance(excludes[0], MapNode) else whole

    def _method(self, entries: Mapping[str, Entry], span: Span) -> Expression | None:
        self._unknown(entries, _OF_METHOD)
        missing = [key for key in ("method", "value") if key not in entries]
        if missing:
            self.report.append(error("missing-key", f"Missing key '{missing[0]}' beside '{next(iter(entries))}'", span))
            return None
        indirect = entries.get("indirect_selection")
        if indirect is not None and self._text(indirect) != "eager":
            message = "mvbuild selects a test with any node that it reads: 'indirect_selection' must be 'eager'"
            self.report.append(error("bad-selectors", message, indirect.node.span))
        flags = {key: self._flag(entries[key]) for key in FLAGS if key in entries}
        depths = {key: self._depth(entries[key]) for key in DEPTHS if key in entries}
        method, value = self._text(entries["method"]), self._value(entries["value"])
        if not method:
            return None
        found = self._criterion(lambda: _criterion(method, value, span, **flags, **depths))
        return self._less(found, entries["exclude"]) if found is not None and "exclude" in entries else found

    def _less(self, whole: Expression, exclude: Entry) -> Expression:
        if not isinstance(exclude.node, ListNode):
            self._wrong("'exclude' must be a list of definitions", exclude.node.span)
            return whole
        parts = tuple(p for p in map(self._definition, exclude.node.items) if p is not None)
        return Difference(left=whole, right=Union(parts=parts))

    def _criterion(self, make: Callable[[], Criterion]) -> Criterion | None:
        try:
            return check(make())
        except ProjectError as exc:
            self.report += exc.diagnostics
            return None

    # --- values

    def _text(self, entry: Entry) -> str:
        value = entry.node.value if isinstance(entry.node, ScalarNode) else None
        if not isinstance(value, str) or not value.strip():
            self._wrong(f"'{entry.key}' must be a string", entry.node.span)
            return ""
        return value

    def _value(self, entry: Entry) -> str:
        """Values such as `config.meta.sensitive: true` are booleans."""
        value = entry.node.value if isinstance(entry.node, ScalarNode) else None
        if value is None or not isinstance(value, (str, bool, int, float)):
            self._wrong(f"'{entry.key}' must have one value", entry.node.span)
            return ""
        return str(value).lower() if isinstance(value, bool) else str(value)

    def _flag(self, entry: Entry) -> bool:
        value = entry.node.value if isinstance(entry.node, ScalarNode) else None
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            value = value.strip().lower() == "true"  # from a template
        if not isinstance(value, bool):
            self._wrong(f"'{entry.key}' must be true or false", entry.node.span)
        return value is True

    def _depth(self, entry: Entry) -> int | None:
        value = entry.node.value if isinstance(entry.node, ScalarNode) else None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self._wrong(f"'{entry.key}' must be an integer", entry.node.span)
            return None
        return value

    def _unknown(self, entries: Mapping[str, Entry], known: tuple[str, ...]) -> None:
        for key, entry in entries.items():
            if key not in known:
                self.report.append(error("unknown-key", f"Unknown key '{key}'", entry.span, help=did_you_mean(key, known)))

    def _wrong(self, message: str, span: Span) -> None:
        self.report.append(error("wrong-type", message, span))


def _criterion(method: str, value: str, span: Span, **reach: Any) -> Criterion:
    return Criterion(raw=f"{method}:{value}", method=method, value=value, span=span, **reach)
