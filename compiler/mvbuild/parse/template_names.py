"""LoadedProject + environment -> the names that templates can use: ref, source, var, env_var, config, this, target..."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sized
from copy import deepcopy
from dataclasses import field, replace
from typing import Any, NoReturn

from jinja2 import Undefined

from mvbuild.cache.keys import digest
from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note, did_you_mean, error, warning
from mvbuild.parse import placeholder
from mvbuild.parse.budget import MOST_HELD, TooMuch
from mvbuild.parse.model import Asked
from mvbuild.parse.of_run import OfRun, StartedAt
from mvbuild.parse.sandbox import Returned
from mvbuild.parse.table_names import TableNames
from mvbuild.parse.template_text import TemplateLines
from mvbuild.project.loaded import LoadedProject
from mvbuild.project.packages import Package
from mvbuild.project.setting import Layer, Setting
from mvbuild.project.settings import Own
from mvbuild.project.target_names import TargetNames
from mvbuild.source import SourceFile, Span

_NO_DEFAULT = object()
_LONGEST_JSON = 1_000_000
_MOST_SAID = 200
_NOT_NEEDED = "Write the plain query: mvbuild detects by itself what changed and what it can refresh incrementally."


def var_answer(vars: Mapping[str, Any], name: Any) -> str | None:
    return digest(vars[name]) if name in vars else None


def env_answer(env: Mapping[str, str], name: str) -> str | None:
    return digest(env[name]) if name in env else None


class Stopped(Exception):
    """Rendering cannot continue; the reason has been recorded."""


@dataclass(slots=True, kw_only=True)
class Rendering:
    """What the current template has reported so far."""

    file: SourceFile
    own: Own | None
    uses_own: bool = False
    """Whether the names of the model were used."""
    layers: list[Layer] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)


class This:
    """`this` in a template: the model itself."""

    __slots__ = ("_names",)

    def __init__(self, names: TemplateNames) -> None:
        self._names = names

    @property
    def name(self) -> str:
        return self._names.own().name

    identifier = table = name

    @property
    def namespace(self) -> str:
        return self._names.namespace_of(self._names.own())

    schema = namespace

    @property
    def catalog(self) -> str:
        return self._names.target.catalog

    database = catalog

    def __str__(self) -> str:
        return placeholder.for_ref(self._names.own().model)


class Exceptions:
    """`exceptions` in a template."""

    __slots__ = ("_names",)

    def __init__(self, names: TemplateNames) -> None:
        self._names = names

    def raise_compiler_error(self, message: object = "") -> NoReturn:
        self._names.stop("template-error", str(message), "raise_compiler_error", "The template raises this error itself.")

    def warn(self, message: object = "") -> str:
        self._names.warn(str(message), "warn")
        return ""


class TemplateNames:
    """The names, and the rendering that they record into. One object is used for a whole run: `current` is set for each template."""

    def __init__(self, project: LoadedProject, env: Mapping[str, str], places: TemplateLines) -> None:
        self._project = project
        self.project_name = project.name
        self._env = env
        self._places = places
        tables = TableNames(project)
        self._known, self._models, self._versions, self._sources = tables.known, tables.models, tables.versions, tables.sources
        self.target = TargetNames.of(project.target)
        self.current = Rendering(file=project.file, own=None)

    def table(self) -> dict[str, Any]:
        """Name -> value."""
        functions: Iterable[Callable[..., Any]] = (
            self.ref,
            self.source,
            self.var,
            self.env_var,
            self.config,
            self.log,
            self.is_incremental,
            self.run_query,
            self.statement,
            self.fromjson,
            self.tojson,
        )
        return {
            **{function.__name__: function for function in functions},
            "this": This(self),
            "target": self.target,
            "project_name": self._project.name,
            "execute": True,
            "exceptions": Exceptions(self),
            "run_started_at": StartedAt("run_started_at", self._project.invocation.started, self.of_run),
            "invocation_id": OfRun("invocation_id", self._project.invocation.id, self.of_run),
            "return": self.return_,
            "set": set,
            "zip": _zip,
        }

    # Tables

    def ref(self, *names: Any, **options: Any) -> str:
        version = next(iter(options.values()), None)
        fits = len(options) <= 1 and not options.keys() - {"v", "version"} and (version is None or type(version) in (int, float, str))
        if not 1 <= len(names) <= 2 or not fits or not all(isinstance(name, str) for name in names):
            help = "Write ref('name') or ref('name', v=2)."
            self._record("unresolved-ref", "ref() takes the name of a model or seed as a string", "ref", None, help)
            return placeholder.for_ref("")
        *project, name = names
        if project and project[0].lower() != self._project.name.lower():
            help = f"This project is called '{self._project.name}'; declare other projects' tables as sources."
            self._record("unresolved-ref", f"Unknown project '{project[0]}'", "ref", project[0], help)
        elif version is not None and (name.lower() in self._models or name.lower() in self._versions):
            return self._ref_version(names, name, str(version))
        elif name.lower() not in self._models:
            help = self._as_version(name) or did_you_mean(name, self._known)
            self._record("unresolved-ref", f"Unknown model or seed '{name}'", "ref", name, help)
        found = placeholder.for_ref(self._models.get(name.lower(), name))
        self.current.asked.append(("ref", names, found))
        return found

    def _as_version(self, name: str) -> str:
        """How to write a version that is called by the name of its file or table; empty if it is none."""
        versions = (model.version for model in self._project.models if model.version is not None)
        for one in versions:
            if name.lower() in (one.file.lower(), one.name.lower(), f"{one.model}_v{one.v}".lower()):
                return f"Write ref('{one.model}', v={one.v!r})."
        return ""

    def _ref_version(self, names: tuple[str, ...], name: str, version: str) -> str:
        known = self._versions.get(name.lower(), {})
        if version not in known:
            message = f"'{name}' has no version {version}" if known else f"'{name}' has no versions"
            help = f"Its versions are {', '.join(known)}." if known else f"Write ref('{name}')."
            self._record("unresolved-ref", message, "ref", name, help)
        found = placeholder.for_ref(known.get(version, name))
        self.current.asked.append(("ref_version", (*names, version), found))
        return found

    def source(self, *names: Any) -> str:
        if len(names) != 2 or not all(isinstance(name, str) for name in names):
            help = "Write source('source', 'table')."
            self._record("unresolved-source", "source() takes the names of a source and of its table as strings", "source", None, help)
            return placeholder.for_source("", "")
        source, table = names
        found = self._sources.get((source.lower(), table.lower()))
        if found:
            self.current.asked.append(("source", names, placeholder.for_source(*found)))
            return placeholder.for_source(*found)
        tables = {t for s, t in self._sources.values() if s.lower() == source.lower()}
        if tables:
            help = did_you_mean(table, tables)
            self._record("unresolved-source", f"The source '{source}' has no table '{table}'", "source", table, help)
        else:
            help = did_you_mean(source, {s for s, _ in self._sources.values()})
            self._record("unresolved-source", f"Unknown source '{source}'", "source", source, help)
        return placeholder.for_source(source, table)

    # Values

    def var(self, name: Any, default: Any = _NO_DEFAULT) -> Any:
        self.current.asked.append(("var", (str(name),), var_answer(self._project.vars, name)))
        if name in self._project.vars:
            return deepcopy(self._project.vars[name])  # templates may change their lists, but not each other's
        if default is not _NO_DEFAULT:
            return default
        near = did_you_mean(str(name), self._project.vars) if self._project.vars else ""
        help = " ".join(filter(None, (near if near.startswith("Did") else "", "Set it under `vars:` or with --vars, or give a default.")))
        self._record("missing-var", f"The variable '{name}' is not set", "var", name, help)
        return ""

    def var_of_package(self, package: Package, name: Any, default: Any = _NO_DEFAULT) -> Any:
        """As in dbt: what the project says for this package, then for all, then the package itself."""
        given = self._project.vars.get(package.name)
        self.current.asked.append(("var", (package.name,), var_answer(self._project.vars, package.name)))
        if isinstance(given, Mapping) and name in given:
            return deepcopy(given[name])
        if name in package.vars and name not in self._project.vars:
            self.current.asked.append(("var", (str(name),), None))
            return deepcopy(package.vars[name])
        return self.var(name, default)

    def env_var(self, name: Any, default: Any = _NO_DEFAULT) -> Any:
        self.current.asked.append(("env_var", (str(name),), env_answer(self._env, str(name))))
        if str(name) in self._env:
            return self._env[str(name)]
        if default is not _NO_DEFAULT:
            return default
        self._record("missing-env-var", f"The environment variable '{name}' is not set", "env_var", name, "")
        return ""

    def config(self, *settings: Any, **named: Any) -> str:
        place = self._places.running()
        span = place.text.tag(place.line, "config") if place else self.current.file.line_span(1)
        values: dict[str, Any] = {}
        for setting in settings:
            if not isinstance(setting, dict):
                self.current.diagnostics.append(error("wrong-type", "config() takes settings by name, or one mapping of them", span))
                continue
            values.update(setting)
        values.update(named)
        layer = {}
        for key, value in values.items():
            key_span, value_span = (place.text.keyword(place.line, "config", str(key)) if place else None) or (None, span)
            layer[str(key)] = Setting(self._plain_setting(key, value, value_span), value_span, key_span)
        self.current.layers.append(layer)
        return ""

    def _plain_setting(self, key: Any, value: Any, span: Span) -> Any:
        try:
            return _plain(value)
        except TypeError:
            message = f"config() cannot store a {type(value).__name__} as '{key}'"
            self.current.diagnostics.append(error("wrong-type", message, span, help="Use a string, a number, a list or a mapping."))
            return None

    def fromjson(self, text: Any, default: Any = None) -> Any:
        if isinstance(text, str) and len(text) > _LONGEST_JSON:
            raise TooMuch(f"fromjson() reads no more than {_LONGEST_JSON:,} characters")
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return default

    def tojson(self, value: Any, default: Any = None) -> Any:
        try:
            return json.dumps(value)
        except (TypeError, ValueError):
            return default

    # What does nothing, and what is not needed

    def log(self, *_: Any, **__: Any) -> str:
        return ""

    def return_(self, value: Any = None) -> NoReturn:
        raise Returned(value)

    def is_incremental(self, *_: Any) -> bool:
        self._record("not-needed", "is_incremental() is not needed", "is_incremental", None, _NOT_NEEDED)
        return False

    def run_query(self, *_: Any, **__: Any) -> NoReturn:
        self.stop("not-needed", "Templates cannot run queries", "run_query", _NOT_NEEDED)

    def statement(self, *_: Any, **__: Any) -> NoReturn:
        self.stop("not-needed", "Templates cannot run statements", "statement", _NOT_NEEDED)

    def of_run(self, name: str) -> None:
        """Said each time: see of_run.py."""
        files = (*self._project.macros, *(file for package in self._project.packages for file in package.macros))
        if any(file.path == self.current.file.path for file in files):
            message = f"'{name}' has a different value in each run, which is not known where a macro file is loaded"
            self.stop("not-needed", message, name, "Use it inside of a macro, where the macro is called.")
        message = f"'{name}' has a different value in each run, so each run refreshes this again"
        help = "If you do not need the value, remove it: mvbuild records when it refreshed an MV, and from what."
        self._say(warning("not-needed", message, self._place(name, None), help=help))

    # For `this` and `exceptions`

    def namespace_of(self, own: Own) -> str:
        return ".".join(self._project.target.namespace_of(own.namespace))

    def own(self) -> Own:
        if self.current.own is None:
            self.stop("undefined-name", "'this' is only available in models", "this", "Name the table with ref().")
        self.current.uses_own = True
        return self.current.own

    def stop(self, code: str, message: str, word: str, help: str) -> NoReturn:
        self._record(code, message, word, None, help)
        raise Stopped

    def warn(self, message: str, word: str) -> None:
        self._say(warning("template-error", message, self._place(word, None), help="The template raises this warning itself."))

    def _record(self, code: str, message: str, word: str, literal: Any, help: str) -> None:
        self._say(error(code, message, self._place(word, literal), help=help))

    def _say(self, diagnostic: Diagnostic) -> None:
        """Report each message once, however often a loop repeats it."""
        reported = self.current.diagnostics
        diagnostic = called_from(diagnostic, self._places.calls_now())
        if all((d.code, d.message, d.span) != (diagnostic.code, diagnostic.message, diagnostic.span) for d in reported):
            reported.append(diagnostic)
        if len(reported) > _MOST_SAID:
            self.current.diagnostics.append(
                error("template-limit", f"and more: the template has more than {_MOST_SAID} errors", diagnostic.span)
            )
            raise Stopped

    def _place(self, word: str, literal: Any) -> Span:
        """The literal argument of the running call, otherwise the tag that contains the call."""
        place = self._places.running()
        if place is None:
            return self.current.file.line_span(1)
        found = place.text.word(place.line, lambda x: x.kind == "string" and x.text[1:-1] == literal) if literal is not None else None
        return found or place.text.tag(place.line, word)


def called_from(diagnostic: Diagnostic, calls: Iterable[Span]) -> Diagnostic:
    """With the macro calls that led there: the error may be in their arguments."""
    return replace(diagnostic, notes=(*diagnostic.notes, *(Note(message="called here", span=span) for span in calls)))


def _zip(*values: Any) -> list[Any]:
    if min((len(v) for v in values if isinstance(v, Sized)), default=0) * len(values) > MOST_HELD:
        raise TooMuch(f"zip() makes more than {MOST_HELD:,} values")
    return list(zip(*values, strict=False))


def _plain(value: Any) -> Any:
    """A copy in plain types. Raises TypeError for objects, and Jinja's error for undefined names."""
    if isinstance(value, Undefined):
        str(value)
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {_plain(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(v) for v in value]
    raise TypeError(type(value).__name__)
