"""template file + names -> MappedText: the rendered SQL with the map back to the file, or what is wrong with the template."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from jinja2 import Template, TemplateSyntaxError, UndefinedError, nodes
from jinja2.exceptions import SecurityError, TemplateAssertionError

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note, did_you_mean, error
from mvbuild.parse.budget import Budget, TooMuch, check_template
from mvbuild.parse.dbt_macros import DBT
from mvbuild.parse.dispatch import Adapter, Api
from mvbuild.parse.libraries import libraries
from mvbuild.parse.marking import Marker, Piece, mapped
from mvbuild.parse.model import Asked, Rendered
from mvbuild.parse.package_macros import PackageMacros, Scope
from mvbuild.parse.sandbox import Sandbox
from mvbuild.parse.template_names import Rendering, Stopped, TemplateNames, called_from
from mvbuild.parse.template_text import Lexeme, TemplateLine, TemplateLines, TemplateText
from mvbuild.project.loaded import LoadedProject
from mvbuild.project.packages import Package
from mvbuild.project.settings import Own
from mvbuild.source import MappedText, SourceFile, Span

_JINJA = re.compile(r"\{[{%#]")
_MACRO = re.compile(r"\{%[-+]?\s*macro\s+(\w+)")
_TEST = re.compile(r"\{%[-+]?\s*(?:data_)?test\s+(\w+)")
_JINJA_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_SETS = (nodes.Assign, nodes.AssignBlock)
_REFUSED = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends, nodes.Block)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compiled:
    template: Template
    pieces: tuple[Piece, ...]
    text: TemplateText
    macros: tuple[str, ...]
    assigned: frozenset[str]
    keeps_values: bool
    """Whether it sets names outside its macros, which its macros share."""


class _Constant:
    """A macro that returns the same value for any arguments."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self._value


class Renderer:
    """One Jinja environment for all the templates of a run."""

    def __init__(self, project: LoadedProject, env: Mapping[str, str], names: Mapping[str, Any] = MappingProxyType({})) -> None:
        """`names` are known to the templates in addition to those of mvbuild, or replace them."""
        self._env = Sandbox()
        self._places = TemplateLines()
        self._names = TemplateNames(project, env, self._places)
        self._table: dict[str, Any] = {**self._env.globals, **self._names.table(), **names}
        self._libraries = libraries(self._table, self._names.var, self._names.stop)
        self._packages = {one.name: PackageMacros(one.name, partial(self._load_package, one), self._names.stop) for one in project.packages}
        self._table["adapter"] = Adapter(self._table, self._libraries, self._packages)
        self._table["api"] = Api()
        self._table.update({name: package for name, package in self._packages.items() if name not in self._table})
        for name in self._libraries.keys() & self._packages.keys():
            self._libraries[name].further = self._packages[name]
        self._builtin = frozenset(self._table)
        self._replaceable = {*DBT, *self._libraries} - self._builtin
        """Names that a macro of the project may take: those of dbt's macros without their prefix."""
        self._table.update({name: self._libraries.get(name) or DBT[name] for name in self._replaceable})
        self._broken_macros: set[str] = set()
        self._keeping: list[tuple[_Compiled, tuple[str, ...], dict[str, Any]]] = []
        self.asked: list[Asked] = []
        """What the macro files ask when they are loaded."""
        self.diagnostics = tuple(d for file in project.macros for d in self._load_macros(file))
        """Errors in the macro files."""
        self._table.update({name: self._libraries["dbt"].find(name) for name in self._replaceable if name in DBT})

    def override(self, macros: Mapping[str, Any]) -> None:
        """Have calls of these macros return a value. A macro of a library has its name before a dot."""
        for name, value in macros.items():
            library, _, macro = name.rpartition(".")
            self._table[f"spark__{macro}" if library in self._libraries else macro] = _Constant(value)

    def render(self, file: SourceFile, own: Own | str | None = None) -> Rendered:
        """The text of a model, or of a test, which has no `this`. A model's name alone has no settings."""
        own = Own(model=own) if isinstance(own, str) else own
        if not _JINJA.search(file.text):
            return Rendered(text=MappedText.of(file))
        file = _with_plain_newlines(file)
        compiled, problems = self._compile(file)
        text, rendering = self._rendered(file, own, compiled)
        named = own.configured(rendering.layers) if own is not None else None
        if rendering.uses_own and named != own:
            # A config() of the template itself names the model, perhaps after the place that asked.
            text, rendering = self._rendered(file, named, compiled)
        return Rendered(
            text=text,
            layers=tuple(rendering.layers),
            diagnostics=(*problems, *rendering.diagnostics),
            asked=tuple(dict.fromkeys((*self.asked, *rendering.asked))),
            is_plain=False,
        )

    def _rendered(self, file: SourceFile, own: Own | None, compiled: _Compiled | None) -> tuple[MappedText | None, Rendering]:
        self._forget()
        rendering = self._names.current = Rendering(file=file, own=own)
        marked = self._run(compiled, rendering) if compiled else None
        return None if marked is None or compiled is None else mapped(marked, compiled.pieces, compiled.text), rendering

    def _load_macros(self, file: SourceFile) -> tuple[Diagnostic, ...]:
        file = _with_plain_newlines(file)
        rendering = self._names.current = Rendering(file=file, own=None)
        compiled, problems = self._compile(file)
        if compiled is None:
            self._broken_macros.update((*_MACRO.findall(file.text), *(f"test_{name}" for name in _TEST.findall(file.text))))
            return problems
        context = compiled.template.new_context(self._table, shared=True)
        if self._run(compiled, rendering, context) is None:
            self._broken_macros.update(compiled.macros)
        self.asked += rendering.asked
        free = {name for name in compiled.macros if name not in self._table or name in self._replaceable}
        defined = tuple(name for name in compiled.macros if name in free and name in context.vars)
        self._replaceable -= free
        rendering.diagnostics += (self._taken(name, compiled.text) for name in compiled.macros if name not in free)
        self._table.update({name: context.vars[name] for name in defined})
        if compiled.keeps_values:
            self._keeping.append((compiled, defined, self._table))
        return (*_defined_twice(file, compiled.macros), *rendering.diagnostics)

    def _load_package(self, package: Package) -> Mapping[str, Any]:
        """Its macros. A file that cannot be loaded leaves out its macros: it may be for another database."""
        scope = Scope(self._table)
        scope["var"] = partial(self._names.var_of_package, package)
        scope["adapter"] = Adapter(scope, self._libraries, self._packages)
        current, budget = self._names.current, self._env.budget
        own: dict[str, Any] = {}
        for file in map(_with_plain_newlines, package.macros):
            rendering = self._names.current = Rendering(file=file, own=None)
            compiled, _ = self._compile(file)
            context = compiled.template.new_context(scope, shared=True) if compiled else None
            if compiled is None or context is None or self._run(compiled, rendering, context) is None:
                continue
            self.asked += rendering.asked
            found = {name: context.vars[name] for name in compiled.macros if name in context.vars}
            own.update(found)
            scope.update(found)
            if compiled.keeps_values:
                self._keeping.append((compiled, tuple(found), scope))
        self._names.current, self._env.budget = current, budget
        return own

    def _forget(self) -> None:
        """Reload the macro files that keep values, as in `{% set seen = [] %}`: one template must not see what another one did to them."""
        for compiled, defined, table in self._keeping:
            rendering = self._names.current = Rendering(file=compiled.text.file, own=None)
            context = compiled.template.new_context(table, shared=True)
            self._run(compiled, rendering, context)
            table.update({name: context.vars[name] for name in defined if name in context.vars})

    def _taken(self, name: str, text: TemplateText) -> Diagnostic:
        what = "a built-in name of mvbuild" if name in self._builtin else "also defined in another file"
        span = text.anywhere(lambda x: x.kind == "name" and x.text in (name, name.removeprefix("test_")))
        return error("duplicate-name", f"The macro '{name}' is {what}", span, help="Rename the macro.")

    def _compile(self, file: SourceFile) -> tuple[_Compiled | None, tuple[Diagnostic, ...]]:
        try:
            check_template(file.text)
            tree = self._env.parse(file.text, file.path, file.path)
            special = tuple(tree.find_all((*_REFUSED, nodes.Name)))
            refused = tuple(_refusal(node, file) for node in special if isinstance(node, _REFUSED))
            if refused:
                return None, refused
            macros = tuple(node.name for node in tree.body if isinstance(node, nodes.Macro))
            assigned = frozenset(n.name for n in special if isinstance(n, nodes.Name) and n.ctx != "load")
            outside = (node for node in tree.body if not isinstance(node, nodes.Macro))
            keeps_values = any(isinstance(node, _SETS) or any(node.find_all(_SETS)) for node in outside)
            marker = Marker()
            tree = marker.visit(tree)
            tree.set_environment(self._env)
            code = self._env.compile(tree, file.path, file.path)
            text = TemplateText.of(self._env, file)
        except TemplateSyntaxError as exc:
            return None, (self._syntax(exc, file),)
        except TooMuch as exc:
            return None, (error("template-limit", str(exc), file.line_span(1)),)
        except Exception as exc:  # noqa: BLE001  (Python's compiler refuses what is nested too deeply, in several ways)
            message = "The template is nested too deeply" if isinstance(exc, (RecursionError, MemoryError, SyntaxError)) else str(exc)
            return None, (error("template-syntax", message, file.line_span(1)),)
        self._places.add(text)
        template = Template.from_code(self._env, code, self._table)
        return _Compiled(
            template=template, pieces=tuple(marker.pieces), text=text, macros=macros, assigned=assigned, keeps_values=keeps_values
        ), ()

    def _run(self, compiled: _Compiled, rendering: Rendering, context: Any = None) -> str | None:
        """The marked output. Errors are recorded in `rendering`."""
        self._env.budget = Budget()
        context = context or compiled.template.new_context(self._table, shared=True)
        try:
            output = []
            for piece in compiled.template.root_render_func(context):
                output.append(piece)
                self._env.budget.write(len(piece))
            return "".join(output)
        except Stopped:
            return None
        except Exception as exc:  # noqa: BLE001  (templates are the user's code: whatever they raise is a diagnostic)
            diagnostic = self._failure(exc, compiled)
            if diagnostic:
                rendering.diagnostics.append(called_from(diagnostic, self._places.calls(exc)))
            return None

    # Errors

    def _syntax(self, exc: TemplateSyntaxError, file: SourceFile) -> Diagnostic:
        message = (exc.message or "The template cannot be parsed").strip()
        open_tag = re.search(r"^Unexpected end of template.* innermost block that needs to be closed is '(\w+)'", message)
        if open_tag:
            message, help = f"{{% {open_tag[1]} %}} is never closed", f"Close it with {{% end{open_tag[1]} %}}."
            return error("template-syntax", message, _open_tag(open_tag[1], file), help=help)
        span = _offender(message, exc.lineno, file)
        unknown = re.match(r"No (filter|test) named '([^']*)'", message)
        if isinstance(exc, TemplateAssertionError) and unknown:
            known = self._env.filters if unknown[1] == "filter" else self._env.tests
            return error("undefined-name", f"Unknown {unknown[1]} '{unknown[2]}'", span, help=did_you_mean(unknown[2], _public(known)))
        return error("template-syntax", _explained(message), span)

    def _failure(self, exc: Exception, compiled: _Compiled) -> Diagnostic | None:
        place = self._places.failed(exc) or TemplateLine(compiled.text, 1)
        message = str(exc) or type(exc).__name__
        if isinstance(exc, TooMuch):
            return error("template-limit", message, place.text.tag(place.line))
        if isinstance(exc, SecurityError):
            return error("unsafe-template", _sentence(message), _word(place, _quoted(message)))
        if isinstance(exc, UndefinedError):
            return self._undefined(message, place, compiled)
        if isinstance(exc, RecursionError):
            return error("template-limit", "The template calls itself endlessly", place.text.tag(place.line))
        if isinstance(exc, OverflowError) and "Range too big" in message:
            return error("template-limit", "A range() has more than 100,000 numbers", _word(place, "range"))
        return error("template-error", _sentence(message), place.text.tag(place.line))

    def _undefined(self, message: str, place: TemplateLine, compiled: _Compiled) -> Diagnostic | None:
        match = re.search(r"^'([^']+)' is undefined|has no (?:attribute|element) '?([^']+)'?$", message)
        name = (match[1] or match[2]) if match else ""
        if name in self._broken_macros:
            return None
        if not (match and match[1]):
            sentence = f"Unknown attribute or key '{name}'" if name else _sentence(message)
            return error("undefined-name", sentence, _word(place, name), help="Test for it with `is defined`, or add |default(...).")
        help = did_you_mean(name, {*_public(self._table), *compiled.assigned})
        span = _word(place, name)
        if span.text != name:
            span = compiled.text.anywhere(lambda x: x.kind == "name" and x.text == name) or span
        return error("undefined-name", f"'{name}' is not defined", span, help=help if help.startswith("Did") else "")


def _defined_twice(file: SourceFile, macros: tuple[str, ...]) -> Iterator[Diagnostic]:
    """The last macro of a name would silently replace the others."""
    if len(set(macros)) == len(macros):
        return
    first: dict[str, Span] = {}
    for found in _MACRO.finditer(_JINJA_COMMENT.sub(lambda comment: " " * len(comment[0]), file.text)):
        span = Span(file, found.start(1), found.end(1))
        other = first.setdefault(found[1], span)
        if other is not span and macros.count(found[1]) > 1:
            notes = (Note(message="the first one", span=other),)
            yield error(
                "duplicate-name", f"The macro '{found[1]}' is defined twice in this file", span, help="Rename one of them.", notes=notes
            )


def _with_plain_newlines(file: SourceFile) -> SourceFile:
    if "\r" not in file.text:
        return file
    return SourceFile(file.path, file.text.replace("\r\n", "\n").replace("\r", "\n"))


def _refusal(node: nodes.Node, file: SourceFile) -> Diagnostic:
    if isinstance(node, nodes.Block):
        return error("template-syntax", "Templates cannot use {% block %}", file.line_span(node.lineno), help="Write a macro.")
    message = "A template cannot read other files"
    return error(
        "unsafe-template", message, file.line_span(node.lineno), help="Macros of the project can be called by name, without an import."
    )


def _explained(message: str) -> str:
    """An explanation of Jinja's message, where that requires knowledge of Jinja."""
    if unexpected := re.search(r"^Encountered unknown tag '(end\w+)'(?:.*innermost block that needs to be closed is '(\w+)')?", message):
        what = f"Unexpected {{% {unexpected[1]} %}}"
        return f"{what}: {{% {unexpected[2]} %}} is" if unexpected[2] else what
    message = message.replace("'end of print statement'", "'}}'").replace("'end of statement block'", "'%}'")
    return _sentence(message)


def _offender(message: str, line: int, file: SourceFile) -> Span:
    """The word that a syntax error is about; Jinja only reports its line."""
    if at := re.search(r"^unexpected char .* at (\d+)$", message):
        return Span(file, int(at[1]), int(at[1]) + 1)
    whole = file.line_span(line)
    named = re.search(r"got '(.+)'$|named '([^']+)'|unknown tag '([^']+)'|^unexpected '([^']+)', expected|^unexpected '(.+)'$", message)
    word = next(filter(None, named.groups()), "") if named else ""
    word = {"end of print statement": "}}", "end of statement block": "%}"}.get(word, word)
    word = "}}" if word == "}" and "}}" in whole.text else word
    if word in ("}}", "%}") and whole.text.count(word) > 1:
        return whole
    found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)" if word.isidentifier() else re.escape(word), whole.text) if word else None
    return Span(file, whole.start + found.start(), whole.start + found.end()) if found else whole


def _open_tag(word: str, file: SourceFile) -> Span:
    """The innermost open tag of a kind."""
    opened: list[Span] = []
    for tag in re.finditer(rf"\{{%[-+]?\s*(end)?{word}\b.*?%\}}", file.text, re.DOTALL):
        if not tag[1]:
            opened.append(Span(file, tag.start(), tag.end()))
        elif opened:
            opened.pop()
    return opened[-1] if opened else file.line_span(1)


def _word(place: TemplateLine, name: str) -> Span:
    """A name, or the string that contains it, on the line of a failed expression; otherwise the expression."""

    def matches(lexeme: Lexeme) -> bool:
        return lexeme.text == name if lexeme.kind == "name" else lexeme.kind == "string" and lexeme.text[1:-1] == name

    return (place.text.word(place.line, matches) if name else None) or place.text.tag(place.line)


def _quoted(message: str) -> str:
    match = re.search(r"attribute '([^']+)'", message)
    return match[1] if match else ""


def _public(names: Iterable[str]) -> Iterator[str]:
    return (name for name in names if not name.startswith(("_", "mvbuild_")))


def _sentence(message: str) -> str:
    return message[:1].upper() + message[1:].rstrip(".")
