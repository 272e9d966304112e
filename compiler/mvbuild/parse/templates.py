"""template file -> Rendered, in the cheapest valid way: unchanged, without Jinja, or with Jinja, which is only loaded then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mvbuild.cache.keys import digest
from mvbuild.cache.store import Table
from mvbuild.diagnostics import Diagnostic
from mvbuild.parse.model import Asked, Rendered
from mvbuild.parse.plain_template import render_plain
from mvbuild.parse.table_names import TableNames
from mvbuild.project.loaded import LoadedProject
from mvbuild.project.setting import Layer
from mvbuild.project.settings import Own
from mvbuild.source import MappedText, SourceFile

if TYPE_CHECKING:
    from mvbuild.parse.render import Renderer


class Templates:
    """The templates of a project."""

    def __init__(self, project: LoadedProject, env: Mapping[str, str], macros: Mapping[str, Any] = MappingProxyType({})) -> None:
        """`macros`: values that calls of macros return instead, for unit tests."""
        self._macros = macros
        self.project = project
        self.env = env
        self._tables = TableNames(project)

    def render(self, file: SourceFile, own: Own | None = None) -> Rendered:
        """The text of a model, or of a test, which has no `this`."""
        if "{" not in file.text:
            return Rendered(text=MappedText.of(file))
        return render_plain(file, self._tables.resolve) or self.renderer.render(file, own)

    def names_in_text(self, own: Own | None, layers: Iterable[Layer]) -> Mapping[str, str]:
        """The value of `this` within a string: the model's full name in the catalog."""
        if own is None:
            return {}
        target, named = self.project.target, own.configured(layers)
        return {own.model: ".".join((target.catalog_name, *target.namespace_of(named.namespace), named.name))}

    @cached_property
    def renderer(self) -> Renderer:
        from mvbuild.parse.render import Renderer

        renderer = Renderer(self.project, self.env)
        renderer.override(self._macros)
        return renderer

    def problems(self, cache: Table) -> tuple[Diagnostic, ...]:
        """Errors in the macro files. Files without errors are not loaded again for this."""
        if not self.project.macros:
            return ()
        key = digest("macros", self.surroundings, sorted(self._tables.models.values()), sorted(self._tables.sources.values()), self._given)
        if cache.get(key) is None and not self.renderer.diagnostics:
            cache.put(key, "1")
        return () if cache.get(key) is not None else self.renderer.diagnostics

    def still(self, asked: Iterable[Asked]) -> bool:
        """Whether the project would give the same answers now."""
        return all(self._answer(kind, names) == answer for kind, names, answer in asked)

    def _answer(self, kind: str, names: tuple[str, ...]) -> str | None:
        if kind in ("ref", "ref_version", "source"):
            return self._tables.resolve(kind, names)
        given: Mapping[str, object] = self.project.vars if kind == "var" else self.env
        return digest(given[names[0]]) if names[0] in given else None

    @cached_property
    def surroundings(self) -> str:
        """A hash of everything that a template may depend on besides its text and what it asks."""
        project = self.project
        target = project.target
        macros = [(file.path, file.text) for file in project.macros]
        packages = [(one.name, sorted(one.vars.items()), [(file.path, file.text) for file in one.macros]) for one in project.packages]
        return digest(project.name, macros, packages, target.name, target.catalog_name, target.namespace, target.namespaces, target.threads)

    @property
    def _given(self) -> str:
        return digest(sorted(self.project.vars.items(), key=lambda item: item[0]), sorted(self.env.items()))
