"""Tree with templates in its scalars -> tree with their values: env_var() and var() in YAML files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import TemplateSyntaxError, UndefinedError, nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.project.yaml_spans import Entry, ListNode, MapNode, Node, ScalarNode, is_template, node_of
from mvbuild.source import Span

_NO_DEFAULT = object()
_FILTERS = ("default", "d", "lower", "upper", "trim", "int", "float", "string", "length", "first", "last", "join", "list", "tojson")
_METHODS = frozenset("split strip lstrip rstrip lower upper startswith endswith removeprefix removesuffix get items keys values".split())


class Interpolation:
    """Renders the scalars of a project. Messages name variables but no values, which may be secrets."""

    def __init__(self, env: Mapping[str, str], vars: Mapping[str, Any], names: Mapping[str, Any] | None = None) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._env = env
        self._vars = vars
        self._sandbox = _Sandbox(undefined=StrictUndefined, optimized=False, cache_size=0, keep_trailing_newline=True)
        self._sandbox.globals = {"env_var": self._env_var, "var": self._var, **(names or {})}
        self._sandbox.filters = {name: self._sandbox.filters[name] for name in _FILTERS}
        self._sandbox.filters |= {"as_text": str, "as_bool": _as_bool, "as_number": _as_number, "as_native": lambda value: value}
        self._sandbox.allowed = {self._env_var, self._var}

    def render(self, node: Node, *, keep: frozenset[str] = frozenset()) -> Node:
        """The tree with every template replaced by its value, except below the keys of `keep`."""
        if isinstance(node, MapNode):
            entries = tuple(e if e.key in keep else Entry(e.key, e.span, self.render(e.node, keep=keep)) for e in node.entries)
            return MapNode(entries, node.span)
        if isinstance(node, ListNode):
            return ListNode(tuple(self.render(item, keep=keep) for item in node.items), node.span)
        if isinstance(node.value, str) and is_template(node.value):
            return self._scalar(node.value, node.span)
        return node

    def _scalar(self, text: str, span: Span) -> Node:
        try:
            return node_of(self._value(text), span)
        except _Missing as exc:
            self.diagnostics.append(error(exc.code, str(exc), span))
        except TemplateSyntaxError as exc:
            self.diagnostics.append(error("template-syntax", f"The template cannot be parsed: {exc.message}", span))
        except SecurityError:
            help = "Templates in YAML can only use env_var(), var(), target and simple filters."
            self.diagnostics.append(error("unsafe-template", "The template uses something that is not allowed", span, help=help))
        except UndefinedError as exc:
            help = "Templates in YAML can only use env_var(), var() and target."
            self.diagnostics.append(error("undefined-name", f"The template uses an undefined name: {_name(exc)}", span, help=help))
        except Exception as exc:  # noqa: BLE001  (the text of other errors could repeat a value)
            self.diagnostics.append(error("template-error", f"The template failed with {type(exc).__name__}", span))
        return ScalarNode(None, span, rendered=True)

    def _value(self, text: str) -> Any:
        """A template with a single expression keeps its type: `{{ var('list') }}` is a list."""
        parsed = self._sandbox.parse(text)
        if any(parsed.find_all((nodes.For, nodes.Macro, nodes.Import, nodes.FromImport, nodes.Include, nodes.Extends))):
            raise SecurityError
        stripped = text.strip()
        if stripped.startswith("{{") and stripped.endswith("}}") and stripped.count("{{") == 1:
            body = parsed.body[0] if len(parsed.body) == 1 else None
            if isinstance(body, nodes.Output):
                inner = stripped[2:-2].strip("-+ \n")
                value = self._sandbox.compile_expression(inner, undefined_to_none=False)()
                if isinstance(value, StrictUndefined):
                    str(value)
                return value
        return self._sandbox.from_string(text).render()

    def _env_var(self, name: Any, default: Any = _NO_DEFAULT) -> Any:
        if str(name) in self._env:
            return self._env[str(name)]
        if default is _NO_DEFAULT:
            raise _Missing("missing-env-var", f"The environment variable '{name}' is not set")
        return default

    def _var(self, name: Any, default: Any = _NO_DEFAULT) -> Any:
        if str(name) in self._vars:
            return self._vars[str(name)]
        if default is _NO_DEFAULT:
            raise _Missing("missing-var", f"The variable '{name}' is not set")
        return default


class _Missing(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Sandbox(ImmutableSandboxedEnvironment):
    """Calls the functions of Interpolation and harmless methods of text and mappings, without arithmetic that can grow."""

    allowed: Any = frozenset()
    intercepted_binops = frozenset(("*", "**", "%"))

    def is_safe_callable(self, obj: Any) -> bool:
        owner = getattr(obj, "__self__", None)
        return obj in self.allowed or (isinstance(owner, (str, dict)) and getattr(obj, "__name__", "") in _METHODS)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or not all(isinstance(value, (int, float)) for value in (left, right)):
            raise SecurityError
        return super().call_binop(context, operator, left, right)


def _name(exc: UndefinedError) -> str:
    message = exc.message or ""
    return message if message.endswith("is undefined") else "an attribute"


def _as_bool(value: Any) -> bool:
    return value if isinstance(value, bool) else str(value).strip().lower() in ("true", "1", "yes", "on")


def _as_number(value: Any) -> Any:
    number = float(value)
    return int(number) if number.is_integer() else number
