"""Markdown files below the paths of a project -> DocsBlocks: `{% docs name %}` blocks, and the descriptions that call doc()."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TypeVar

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note, did_you_mean, error
from mvbuild.project.loaded import DocsBlock, Properties, SourceTable
from mvbuild.project.properties import Described, Entry
from mvbuild.source import SourceFile, Span

_OPENED = re.compile(r"\{%-?\s*docs\s+(\w+)\s*-?%\}")
_CLOSED = re.compile(r"\{%-?\s*enddocs\s*-?%\}")
_CALL = re.compile(r"""\{\{-?\s*doc\(\s*(?:['"](\w+)['"]\s*,\s*)?['"](\w+)['"]\s*\)\s*-?\}\}""")
_Described = TypeVar("_Described", Entry, SourceTable)


@dataclass(frozen=True, slots=True)
class DocsBlocks:
    """The blocks of a project by name, and what is wrong with them."""

    project: str
    blocks: Mapping[str, DocsBlock] = field(default_factory=dict)

    def text(self, text: str, span: Span, report: list[Diagnostic]) -> str:
        """A description with the text of the blocks that it calls. Text without a call of doc() stays as it is."""
        return _CALL.sub(lambda call: self._called(call, span, report), text) if "{{" in text else text

    def _called(self, call: re.Match[str], span: Span, report: list[Diagnostic]) -> str:
        package, name = call[1], call[2]
        found = self.blocks.get(name) if package in (None, self.project) else None
        if found is None:
            help = did_you_mean(name, self.blocks) or "Write it in a Markdown file below a model path: {% docs NAME %} ... {% enddocs %}."
            if package not in (None, self.project):
                help = f"Docs blocks of packages are not read: write the block into this project, and doc('{name}')."
            report.append(error("undefined-name", f"Unknown docs block '{name}'", span, help=help))
            return call[0]
        return found.text

    def applied(self, described: Described, report: list[Diagnostic]) -> None:
        """Replace the calls of doc() in the descriptions of models, seeds, sources and their columns."""
        for entries in (described.models, described.seeds):
            for name, entry in entries.items():
                entries[name] = self._with(entry, report)
        for key, source in described.sources.items():
            described.sources[key] = self._with(source, report)

    def _with(self, one: _Described, report: list[Diagnostic]) -> _Described:
        of: Properties = one.properties
        if not any("{{" in text for text in (of.description, *(column.description for column in of.columns))):
            return one
        columns = tuple(replace(c, description=self.text(c.description, c.span, report)) for c in of.columns)
        properties = replace(of, description=self.text(of.description, one.span, report), columns=columns)
        return replace(one, properties=properties)


def docs_blocks(project: str, files: Iterable[SourceFile], report: list[Diagnostic]) -> DocsBlocks:
    """The blocks of these files. As in dbt, a name is that of one block."""
    found: dict[str, DocsBlock] = {}
    for file in files:
        for opened in _OPENED.finditer(file.text):
            name, span = opened[1], Span(file, opened.start(1), opened.end(1))
            following = _OPENED.search(file.text, opened.end())
            closed = _CLOSED.search(file.text, opened.end(), following.start() if following else len(file.text))
            if closed is None:
                message = f"The docs block '{name}' is never closed"
                report.append(error("template-syntax", message, span, help="Close it with {% enddocs %}."))
                continue
            block = DocsBlock(name=name, text=file.text[opened.end() : closed.start()].strip(), span=span)
            other = found.setdefault(name, block)
            if other is not block:
                notes = (Note(message="first defined here", span=other.span),)
                message = f"Duplicate docs block '{name}'"
                report.append(error("duplicate-name", message, span, help="Rename one of the two.", notes=notes))
    return DocsBlocks(project, found)
