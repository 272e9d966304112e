"""a test of the project's own kind, as YAML uses it -> the template that calls its macro -> the query for the rows that violate it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from mvbuild.diagnostics import Diagnostic, did_you_mean, error
from mvbuild.parse.file import ParsedFile
from mvbuild.parse.libraries import LIBRARIES, TEST_PREFIX
from mvbuild.project.keys import TESTS
from mvbuild.project.loaded import DataTest, LoadedProject, ModelFile, Seed, SourceTable
from mvbuild.project.packages import Package
from mvbuild.source import SourceFile, Span

Tested = ModelFile | Seed | SourceTable
TestKey = tuple[str, str]
"""The table as a template names it, and the name of the test."""

_DEFINED = re.compile(r"\{%[-+]?\s*(?:data_)?test\s+(\w+)\s*\(")
_CALL = re.compile(r"\s*(?:env_var|ref|var|source)\s*\(.+\)\s*", re.DOTALL)
"""As in dbt, an argument of this form is an expression."""
_EXPRESSION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def is_custom(test: DataTest) -> bool:
    return test.kind not in TESTS


def key_of(tested: Tested, test: DataTest) -> TestKey:
    return _table(tested), test.name


def custom_uses(project: LoadedProject) -> Iterator[tuple[Tested, DataTest]]:
    """Every test of an own kind, with the table that it is declared for."""
    everything: Iterable[Tested] = (*project.models, *project.seeds, *project.sources)
    for tested in everything:
        for test in tested.properties.tests:
            if is_custom(test):
                yield tested, test


def template_of(tested: Tested, test: DataTest) -> SourceFile:
    """A template of one call. Its path says which test it is, since no file has this text."""
    rows = _table(tested)
    if test.where:
        rows = f"'(select * from ' ~ {rows} ~ ' where ' ~ {_expression(test.where)} ~ ') dbt_subquery'"
    library, _, kind = test.kind.rpartition(".")
    arguments = {"column_name": test.column, **test.arguments} if test.column else test.arguments
    given = "".join(f", {name}={_expression(value)}" for name, value in arguments.items())
    call = f"{library}.{TEST_PREFIX}{kind}" if library else f"{TEST_PREFIX}{kind}"
    return SourceFile(f"{test.span.file.path}#{_table(tested)}.{test.name}", f"{{{{ {call}(model={rows}{given}) }}}}")


def unknown_kind(test: DataTest, packages: Iterable[Package]) -> Diagnostic | None:
    """For a test that neither mvbuild's libraries nor the installed packages have."""
    library, _, kind = test.kind.rpartition(".")
    if not library or TEST_PREFIX + kind in LIBRARIES.get(library, ()):
        return None
    known = [f"{of}.{name.removeprefix(TEST_PREFIX)}" for of, names in LIBRARIES.items() for name in names if name.startswith(TEST_PREFIX)]
    known += [f"{package.name}.{name}" for package in packages for file in package.macros for name in _DEFINED.findall(file.text)]
    if test.kind in known:
        return None
    return error("unknown-key", f"Unknown test '{test.kind}'", test.span, help=did_you_mean(test.kind, known))


def at_the_use(parsed: ParsedFile, test: DataTest, template: SourceFile) -> tuple[Diagnostic, ...]:
    """The diagnostics of a test, at its place in YAML instead of in the template of its call."""

    def place(span: Span | None) -> Span | None:
        return test.span if span is None or span.file == template else span

    found = (*parsed.rendering, *parsed.sql)
    return tuple(
        replace(d, span=place(d.span), notes=tuple(note for note in d.notes if note.span is None or note.span.file != template))
        for d in found
    )


def _table(tested: Tested) -> str:
    if isinstance(tested, SourceTable):
        return f"source({_literal(tested.source)}, {_literal(tested.name)})"
    return f"ref({_literal(tested.name)})"


def _expression(value: Any) -> str:
    """A value of YAML as an expression of Jinja."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(str(name))}: {_expression(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_expression, value)) + "]"
    if not isinstance(value, str):
        return repr(value)
    if _CALL.fullmatch(value):
        return value.strip()
    parts = _EXPRESSION.split(value)
    if len(parts) == 1:
        return _literal(value)
    pieces = [f"({part.strip()})" if i % 2 else _literal(part) for i, part in enumerate(parts) if i % 2 or part]
    return " ~ ".join(pieces) if len(pieces) == 1 else f"({' ~ '.join(pieces)})"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    # A brace could begin a tag.
    for brace in "{}":
        escaped = escaped.replace(brace, f"\\x{ord(brace):x}")
    return f"'{escaped}'"
