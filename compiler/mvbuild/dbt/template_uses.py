"""A template -> Uses: every outside name in it, with `root.attribute` if an attribute is used, and its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import chain

from jinja2 import TemplateError, nodes

from mvbuild.dataclass import dataclass
from mvbuild.parse.libraries import PREFIXES
from mvbuild.parse.sandbox import Sandbox
from mvbuild.parse.template_text import TemplateText
from mvbuild.source import SourceFile, Span


@dataclass(frozen=True, slots=True)
class Use:
    """A name that is neither set nor a parameter at its place."""

    root: str
    attribute: str | None
    called: bool
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroUses:
    name: str
    span: Span
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateUses:
    """What a template uses outside its macros, and what each of its macros uses."""

    uses: tuple[Use, ...] = ()
    macros: tuple[MacroUses, ...] = ()


def uses_of(file: SourceFile) -> TemplateUses:
    """The uses of a template; none if it cannot be parsed, which rendering will report."""
    env = Sandbox()
    try:
        tree = env.parse(file.text)
        finder = _Finder(TemplateText.of(env, file))
        macros = tuple(node for node in tree.body if isinstance(node, nodes.Macro))
        outside = [node for node in tree.body if not isinstance(node, nodes.Macro)]
        return TemplateUses(
            uses=tuple(finder.uses(outside, frozenset(m.name for m in macros))), macros=tuple(finder.macro(node) for node in macros)
        )
    except (TemplateError, RecursionError, ValueError):
        return TemplateUses()


def closure(uses: Iterable[Use], macros: Mapping[str, MacroUses]) -> Iterator[tuple[Use, Use]]:
    """Every use, including those of called macros: the place in the template itself, and the final use."""
    for use in uses:
        yield use, use
        seen: set[str] = set()
        stack = [use.root] if use.attribute is None else []
        while stack:
            name = stack.pop()
            if name in macros and name not in seen:
                seen.add(name)
                for inner in macros[name].uses:
                    yield use, inner
                    stack.append(inner.root)


@dataclass(slots=True)
class _Finder:
    text: TemplateText
    places: dict[str, list[int]] = field(init=False)
    """Name -> its positions among the lexemes, in order."""

    def __post_init__(self) -> None:
        self.places = {}
        for i, x in enumerate(self.text.lexemes):
            if x.kind == "name":
                self.places.setdefault(x.text, []).append(i)

    def macro(self, node: nodes.Macro) -> MacroUses:
        parameters = {arg.name for arg in node.args} | {"varargs", "kwargs", "caller"}
        place = self.text.word(node.lineno, lambda x: x.kind == "name" and x.text == node.name) or self.text.tag(node.lineno)
        return MacroUses(name=node.name, span=place, uses=tuple(self.uses([*node.defaults, *node.body], frozenset(parameters))))

    def uses(self, body: Iterable[nodes.Node], known: frozenset[str]) -> Iterator[Use]:
        body = list(body)
        assigned = {name.name for part in body for name in _names(part) if name.ctx in ("store", "param")}
        seen: set[tuple[str, str | None, Span]] = set()
        for part in body:
            for root, attribute, called, line in _outside(part):
                if root in assigned or root in known:
                    continue
                use = Use(root, attribute, called, self._span(root, attribute, line))
                if (root, attribute, use.span) not in seen:
                    seen.add((root, attribute, use.span))
                    yield use

    def _span(self, name: str, attribute: str | None, line: int) -> Span:
        """The name followed by its attribute, at the line or below it, since a tag may have several lines."""
        lexemes = self.text.lexemes
        below = [i for i in self.places.get(name, ()) if lexemes[i].line >= line]
        exact = (
            i
            for i in below
            if i + 2 < len(lexemes)
            and (attribute is None) == (lexemes[i + 1].text not in (".", "["))
            and (attribute is None or lexemes[i + 2].text.strip("'\"") == attribute)
        )
        at = next(chain(exact, below), None)
        best = None if at is None else lexemes[at]
        return Span(self.text.file, best.start, best.end) if best else self.text.tag(line)


def _dispatched(call: nodes.Call) -> tuple[str, ...]:
    """The name in `adapter.dispatch('name')`: the macros that it may find are used."""
    asked, first = call.node, next(iter(call.args), None)
    if not isinstance(asked, nodes.Getattr) or asked.attr != "dispatch" or not isinstance(first, nodes.Const):
        return ()
    is_dispatch = isinstance(asked.node, nodes.Name) and asked.node.name == "adapter" and isinstance(first.value, str)
    return (first.value,) if is_dispatch else ()


def _names(node: nodes.Node) -> Iterator[nodes.Name]:
    if isinstance(node, nodes.Name):
        yield node
    yield from node.find_all(nodes.Name)


def _outside(node: nodes.Node, called: bool = False) -> Iterator[tuple[str, str | None, bool, int]]:
    if isinstance(node, nodes.Call):
        yield from ((f"{prefix}{name}", None, True, node.lineno) for name in _dispatched(node) for prefix in PREFIXES)
        yield from _outside(node.node, called=True)
        for child in (*node.args, *node.kwargs):
            yield from _outside(child)
        return
    if isinstance(node, (nodes.Getattr, nodes.Getitem)) and isinstance(node.node, nodes.Name):
        attribute = node.attr if isinstance(node, nodes.Getattr) else node.arg.value if isinstance(node.arg, nodes.Const) else "?"
        yield node.node.name, str(attribute), called, node.lineno
        if isinstance(node, nodes.Getitem):
            yield from _outside(node.arg)
        return
    if isinstance(node, nodes.Name):
        if node.ctx == "load":
            yield node.name, None, called, node.lineno
        return
    for child in node.iter_child_nodes():
        yield from _outside(child)
