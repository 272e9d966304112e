"""`unit_tests:` in the YAML files of a project -> UnitTests, with their rows as written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, error
from mvbuild.project.csv_rows import CsvError, records
from mvbuild.project.files import LARGEST_TEXT, decode, read_bytes
from mvbuild.project.loaded import LoadedProject, ModelVersion
from mvbuild.project.yaml_spans import ListNode, MapNode, Node, is_empty, plain, read_yaml
from mvbuild.source import SourceFile, Span

Format = Literal["dict", "csv", "sql"]
MOST_RANDOM_ROWS = 100_000
"""They are literals of one query."""
FORMATS: tuple[Format, ...] = ("dict", "csv", "sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsAsWritten:
    """The rows of an input or of the result: records, or a query for them. Values of CSV are text or None."""

    records: tuple[Mapping[str, Any], ...] = ()
    columns: tuple[str, ...] = ()
    sql: str | None = None
    random: int | None = None
    """This many rows are made by the types of the columns instead."""
    format: Format = "dict"
    fixture: str | None = None
    span: Span
    places: tuple[Span, ...] = ()
    """Where each record is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The rows of one table that the model reads."""

    input: str
    """As written: ref('a'), source('a', 'b'), this, or a table's name."""
    rows: RowsAsWritten
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What a test changes around the model."""

    macros: Mapping[str, Any] = field(default_factory=dict)
    vars: Mapping[str, Any] = field(default_factory=dict)
    env_vars: Mapping[str, str] = field(default_factory=dict)
    clock: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTest:
    """A model with the rows that it reads, and those that it must return."""

    name: str
    model: str
    description: str
    given: tuple[Given, ...]
    expect: RowsAsWritten | None
    """None: only that it runs, and with `incremental` that a refresh gives the same rows."""
    overrides: Overrides
    incremental: bool
    tags: tuple[str, ...]
    meta: Mapping[str, Any]
    span: Span
    file: SourceFile

    version: ModelVersion | None = None
    """The version of the model that is tested; `model` has it in its name."""

    def id(self, project: str) -> str:
        """As in dbt."""
        if self.version is not None:
            return f"unit_test.{project}.{self.version.model}.{self.name}_v{self.version.v}"
        return f"unit_test.{project}.{self.model}.{self.name}"


def read_unit_tests(project: LoadedProject) -> tuple[UnitTest, ...]:
    """The enabled ones. Raises ProjectError with everything that is wrong with their rows; their keys were checked before."""
    report: list[Diagnostic] = []
    found: dict[tuple[str, str], UnitTest] = {}
    versions = [model.version for model in project.models if model.version is not None]
    for path in project.yaml_paths:
        text = read_bytes(project.root / path, path, LARGEST_TEXT)
        if b"unit_tests" not in text:
            continue
        file = decode(path, text)
        tree, _ = read_yaml(file)
        for node in _items(tree, "unit_tests"):
            test = _unit_test(project.root, node, file, report)
            tests = tuple(_for_each_version(test, node, versions, report)) if test else ()
            report += (
                error("duplicate-name", f"The model '{one.model}' has two unit tests '{one.name}'", one.span)
                for one in tests
                if found.setdefault((one.model.lower(), one.name.lower()), one) is not one
            )
    if report:
        raise ProjectError(report)
    return tuple(found.values())


def _for_each_version(test: UnitTest, node: MapNode, versions: Sequence[ModelVersion], report: list[Diagnostic]) -> Iterator[UnitTest]:
    """The test itself, or one for each version of its model that it does not leave out."""
    of_model = [version for version in versions if version.model.lower() == test.model.lower()]
    if not of_model:
        yield test
        return
    entry = node.get("versions")
    declared = plain(entry.node) if entry and isinstance(entry.node, MapNode) else {}
    include, exclude = ({*_texts(declared.get(key))} for key in ("include", "exclude"))
    unknown = sorted((include | exclude) - {str(version.v) for version in of_model})
    if entry and (unknown or (include and exclude)):
        message = f"'{test.model}' has no version {unknown[0]}" if unknown else "'versions' has either 'include' or 'exclude'"
        report.append(error("bad-unit-test", message, entry.node.span))
    for version in of_model:
        if str(version.v) not in exclude and (not include or str(version.v) in include):
            yield replace(test, model=version.name, version=version)


def _unit_test(root: Path, node: MapNode, file: SourceFile, report: list[Diagnostic]) -> UnitTest | None:
    values = plain(node)
    config = values.get("config") or {}
    name, model = values.get("name"), values.get("model")
    if config.get("enabled") is False or not isinstance(name, str) or not isinstance(model, str):
        return None
    given = []
    for item in _items(node, "given"):
        rows = _rows(root, item, report)
        if rows is not None:
            place = item.get("input")
            given.append(Given(input=str(plain(item)["input"]), rows=rows, span=place.node.span if place else item.span))
    expect = node.get("expect")
    rows = _rows(root, expect.node, report) if expect and isinstance(expect.node, MapNode) else None
    overrides = values.get("overrides") or {}
    clock = overrides.get("clock")
    place = node.get("name")
    return UnitTest(
        name=name,
        model=model,
        description=values.get("description") or "",
        given=tuple(given),
        expect=rows,
        overrides=Overrides(
            macros=overrides.get("macros") or {},
            vars=overrides.get("vars") or {},
            env_vars={key: str(value) for key, value in (overrides.get("env_vars") or {}).items()},
            clock=None if clock is None else str(clock),
        ),
        incremental=values.get("incremental") is True,
        tags=_texts(config.get("tags")),
        meta=config.get("meta") or {},
        span=place.node.span if place else node.span,
        file=file,
    )


def _rows(root: Path, node: MapNode, report: list[Diagnostic]) -> RowsAsWritten | None:
    values = plain(node)
    form = next((known for known in FORMATS if known == (values.get("format") or "dict")), None)
    entry = node.get("rows")
    rows, fixture, random = values.get("rows"), values.get("fixture"), values.get("random")
    span = entry.node.span if entry else node.span
    wrong = ""
    if form is None:
        wrong = f"'format' must be {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
    elif random is not None and random > MOST_RANDOM_ROWS:
        wrong = f"'random' must be at most {MOST_RANDOM_ROWS:,}"
        entry = node.get("random")
        span = entry.node.span if entry else span
    elif random is not None:
        return RowsAsWritten(random=random, span=node.span)
    elif fixture is not None:
        if form == "dict":
            wrong = "A fixture needs `format: csv` or `format: sql`"
        else:
            path = _fixture(root, str(fixture), form)
            if path is None:
                wrong = f"There is no file {fixture}.{form} below the folder tests/fixtures"
            else:
                rows = decode(str(path.relative_to(root)), read_bytes(path, str(path), LARGEST_TEXT)).text
    if wrong or form is None:
        report.append(error("bad-unit-test", wrong, span))
        return None
    if form == "dict":
        return _dicts(entry.node if entry else None, span, report)
    if not isinstance(rows, str):
        report.append(
            error(
                "bad-unit-test", f"With `format: {form}`, 'rows' must be a string", span, help="Write `rows: |` and indent the text below."
            )
        )
        return None
    found = RowsAsWritten(sql=rows.strip().rstrip(";"), span=span) if form == "sql" else _csv(rows, span, report)
    return found and replace(found, format=form, fixture=None if fixture is None else str(fixture))


def _fixture(root: Path, name: str, form: str) -> Path | None:
    wanted = name if name.endswith(f".{form}") else f"{name}.{form}"
    return next((path for path in sorted((root / "tests" / "fixtures").rglob(f"*.{form}")) if path.name == wanted), None)


def _dicts(node: Node | None, span: Span, report: list[Diagnostic]) -> RowsAsWritten | None:
    if node is None or is_empty(node):
        return RowsAsWritten(span=span)
    items = node.items if isinstance(node, ListNode) else (node,)
    wrong = next((item for item in items if not isinstance(item, MapNode)), None)
    if wrong is not None or not isinstance(node, ListNode):
        place = wrong.span if wrong is not None else span
        report.append(error("bad-unit-test", "A row must be a mapping of columns to values", place, help="Write `- {id: 1, name: Ada}`."))
        return None
    found = tuple(plain(item) for item in items)
    columns = tuple(dict.fromkeys(str(name) for row in found for name in row))
    return RowsAsWritten(records=found, columns=columns, span=span, places=tuple(item.span for item in items))


def _csv(text: str, span: Span, report: list[Diagnostic]) -> RowsAsWritten | None:
    try:
        head, *rows = records(text.strip("\n") + "\n", ",")
    except (CsvError, ValueError) as exc:
        report.append(error("bad-unit-test", f"The CSV cannot be read: {exc}", span))
        return None
    columns = tuple((name or "").strip() for name in head.values)
    for number, row in enumerate(rows, 1):
        if len(row.values) != len(columns):
            message = f"Row {number} has {len(row.values)} values, and the header has {len(columns)} columns"
            report.append(error("bad-unit-test", message, span))
            return None
    found = tuple({name: _trimmed(value) for name, value in zip(columns, row.values, strict=True)} for row in rows)
    return RowsAsWritten(records=found, columns=columns, span=span, places=(span,) * len(found))


def _trimmed(value: str | None) -> str | None:
    return None if value is None or value.strip().lower() == "null" else value.strip()


def _items(node: Node | None, key: str) -> Iterator[MapNode]:
    entry = node.get(key) if isinstance(node, MapNode) else None
    for item in entry.node.items if entry and isinstance(entry.node, ListNode) else ():
        if isinstance(item, MapNode):
            yield item


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(one) for one in (value if isinstance(value, list) else [] if value in (None, "") else [value]))
