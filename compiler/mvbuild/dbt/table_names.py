"""A node of the dbt project -> the schema and alias that dbt gives it, by dbt's rule or the project's own macros."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from types import SimpleNamespace
from typing import Any

from jinja2 import Undefined

from mvbuild.dataclass import dataclass
from mvbuild.dbt.dbt_target import DbtTarget
from mvbuild.parse.render import Renderer
from mvbuild.source import SourceFile

MACROS = ("generate_schema_name", "generate_alias_name", "generate_database_name")


class _Settings(dict[str, Any]):
    """In dbt's templates, an unset value is empty and not an error."""

    def __missing__(self, key: str) -> Undefined:
        return Undefined(name=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """`schema` and `alias` are None if the macro could not be applied."""

    schema: str | None
    alias: str | None
    problem: str = ""
    """Why one of them is not known."""


@dataclass(slots=True)
class NameMacros:
    """The macros of a project that name tables. `asked` is what they are applied to."""

    target: DbtTarget
    project: str
    defined: frozenset[str]
    problem: str = ""
    asked: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(custom=None, node=None))

    def template_names(self) -> dict[str, Callable[..., Any]]:
        """Names for the templates, for a Renderer."""
        own: dict[str, Callable[..., Any]] = {
            "import_custom": lambda: self.asked.custom,
            "import_node": lambda: self.asked.node,
            "generate_schema_name_for_env": lambda custom=None, *_: self._for_env(custom),
            "default__generate_schema_name": lambda custom=None, *_: self.default_schema(custom),
            "default__generate_alias_name": lambda custom=None, node=None: str(custom).strip() if custom else _default_alias(node),
        }
        return {name: function for name, function in own.items() if name not in self.defined}

    def _for_env(self, custom: str | None) -> str:
        return str(custom).strip() if self.target.name == "prod" and custom is not None else self.target.schema

    def default_schema(self, custom: str | None) -> str:
        return self.target.schema if custom is None else f"{self.target.schema}_{str(custom).strip()}"

    def named(
        self, renderer: Renderer, kind: str, name: str, path: str, schema: str | None, alias: str | None, version: object = None
    ) -> Named:
        unrendered = _Settings({key: value for key, value in (("schema", schema), ("alias", alias)) if value is not None})
        config = SimpleNamespace(schema=schema, alias=alias, get=unrendered.get)
        node = SimpleNamespace(
            name=name,
            resource_type=kind,
            package_name=self.project,
            unique_id=f"{kind}.{self.project}.{name}",
            fqn=[self.project, *path.split("/")[1:-1], name],
            path="/".join(path.split("/")[1:]),
            original_file_path=path,
            config=config,
            unrendered_config=unrendered,
            version=version,
        )
        self.problem = ""
        named_schema = self._apply(renderer, "generate_schema_name", schema, node) or self._default(schema, "generate_schema_name")
        named_alias = self._apply(renderer, "generate_alias_name", alias, node)
        if named_alias is None and "generate_alias_name" not in self.defined:
            named_alias = alias or _default_alias(node)
        return Named(schema=named_schema, alias=named_alias, problem=self.problem)

    def _default(self, schema: str | None, macro: str) -> str | None:
        return None if macro in self.defined else self.default_schema(schema)

    def _apply(self, renderer: Renderer, macro: str, custom: str | None, node: SimpleNamespace) -> str | None:
        if macro not in self.defined:
            return None
        self.asked.custom, self.asked.node = custom, node
        rendered = renderer.render(SourceFile(f"{macro}()", f"{{{{ {macro}(import_custom(), import_node()) }}}}"))
        wrong = [d.message for d in rendered.diagnostics if d.severity == "error"]
        name = rendered.text.text.strip() if rendered.text is not None and not wrong else ""
        self.problem = self.problem or ("" if name else f"'{macro}': {wrong[0] if wrong else 'it gives no name'}")
        return name or None


def _default_alias(node: SimpleNamespace) -> str:
    return f"{node.name}_v{str(node.version).replace('.', '_')}" if node.version is not None else str(node.name)
