"""LoadedProject -> ParsedProject: every template rendered, every query parsed, every model configured."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import PurePosixPath
from typing import Any, Literal

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, ProjectError, did_you_mean, error
from mvbuild.diagnostics.causes import without_unset
from mvbuild.parse.file import ParsedFile
from mvbuild.parse.files import Task, parse_files
from mvbuild.parse.generic_tests import Tested, TestKey, at_the_use, custom_uses, template_of, unknown_kind
from mvbuild.parse.generic_tests import key_of as test_key
from mvbuild.parse.model import ParsedModel, ParsedTest, Query
from mvbuild.parse.templates import Templates
from mvbuild.project.counting import SETTINGS as COUNTING
from mvbuild.project.counting import Counting, counting_of, problem_of
from mvbuild.project.loaded import DataTest, LoadedProject, ModelFile, SourceTable
from mvbuild.project.setting import Layer, Setting
from mvbuild.project.setting_values import Unfit, mapping, texts
from mvbuild.project.settings import Own, model_config
from mvbuild.source import MappedText, SourceFile
from mvbuild.workers import Workers

_WORD = r"(?:`[^`]+`|\w+)"
_DOTTED = re.compile(rf"{_WORD}(?:\s*\.\s*{_WORD})*")
_UNRESOLVED = ("unresolved-ref", "unresolved-source")
_LABELS: Mapping[str, Callable[[str, Setting], Any]] = {"tags": texts, "meta": mapping}
_TEST_SETTINGS = ("enabled", "severity", "group", *_LABELS, *COUNTING)
_INSTEAD = {"where": "A SQL test has a query of its own: put the condition into it."}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedProject:
    """The enabled models and SQL tests. `warnings` do not stop the stage."""

    models: tuple[ParsedModel, ...]
    tests: tuple[ParsedTest, ...]
    warnings: tuple[Diagnostic, ...] = ()
    custom: Mapping[TestKey, Query] = field(default_factory=dict)
    """The queries of the tests of the project's own kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """One file: its parsed form, unless it is disabled or wrong."""

    parsed: ParsedModel | ParsedTest | None
    diagnostics: tuple[Diagnostic, ...]
    enabled: bool = True

    @property
    def of_model(self) -> tuple[Diagnostic, ...]:
        """The errors of a model, which block nothing but what reads it."""
        return self.parsed.problems if isinstance(self.parsed, ParsedModel) else ()


def parse_project(project: LoadedProject, *, env: Mapping[str, str], workers: Workers) -> ParsedProject:
    """Raises ProjectError with the errors of all files at once, but not for errors of models alone: these are in their `problems`."""
    templates = Templates(project, env)
    active = [model for model in project.models if not _is_disabled(model.layers)]
    tasks: list[Task] = [*((m.file, _own(m)) for m in active), *((file, None) for file in project.tests)]
    files = parse_files(tasks, templates, project.cache.files, workers)
    parsed_files = iter(files)
    disabled_before = _Outcome(parsed=None, diagnostics=(), enabled=False)
    models = [(m.name, disabled_before if _is_disabled(m.layers) else _model(m, next(parsed_files))) for m in project.models]
    tests = [_test(file, next(parsed_files)) for file in project.tests]
    outcomes = [*(outcome for _, outcome in models), *tests]
    disabled = {name.lower() for name, outcome in models if not outcome.enabled}
    disabled |= {seed.name.lower() for seed in project.seeds if not seed.config.enabled}
    outcomes = [_reading_enabled(outcome, disabled) for outcome in outcomes]
    parsed = [outcome.parsed for outcome in outcomes if outcome.parsed]
    before = templates.problems(project.cache.files)
    custom, after = _custom_tests(project, disabled, templates, workers)
    diagnostics = [*before, *(d for outcome in outcomes for d in outcome.diagnostics), *after]
    if any(d.severity == "error" for d in diagnostics):
        raise ProjectError([*before, *(d for outcome in outcomes for d in (*outcome.diagnostics, *outcome.of_model)), *after])
    return ParsedProject(
        models=tuple(p for p in parsed if isinstance(p, ParsedModel)),
        tests=tuple(p for p in parsed if isinstance(p, ParsedTest)),
        warnings=tuple(diagnostics),
        custom=custom,
    )


def _custom_tests(
    project: LoadedProject, disabled: Collection[str], templates: Templates, workers: Workers
) -> tuple[Mapping[TestKey, Query], tuple[Diagnostic, ...]]:
    uses = [use for use in custom_uses(project) if isinstance(use[0], SourceTable) or use[0].name.lower() not in disabled]
    queries: dict[TestKey, Query] = {}
    report = [wrong for _, test in uses if (wrong := unknown_kind(test, project.packages))]
    calls = [(tested, test, template_of(tested, test)) for tested, test in uses if unknown_kind(test, project.packages) is None]
    files = parse_files([(call, None) for _, _, call in calls], templates, project.cache.files, workers)
    for (tested, test, call), file in zip(calls, files, strict=True):
        report += at_the_use(file, test, call)
        if file.query:
            queries[test_key(tested, test)] = file.query
    return queries, tuple(report)


def parse_custom_test(tested: Tested, test: DataTest, templates: Templates) -> Query:
    """Parse one test of an own kind, which has no error."""
    (file,) = parse_files([(template_of(tested, test), None)], templates, templates.project.cache.files, Workers(1))
    assert file.query is not None, test.name
    return file.query


def parse_model(model: ModelFile, templates: Templates) -> ParsedModel | None:
    """Parse one model; None if it is disabled. Raises ProjectError with all of its diagnostics, including warnings."""
    (file,) = parse_files([(model.file, _own(model))], templates, templates.project.cache.files, Workers(1))
    parsed = _alone(_model(model, file))
    return parsed if isinstance(parsed, ParsedModel) else None


def parse_test(file: SourceFile, templates: Templates) -> ParsedTest | None:
    """Parse one test; None if it is disabled. Raises ProjectError with all of its diagnostics, including warnings."""
    (found,) = parse_files([(file, None)], templates, templates.project.cache.files, Workers(1))
    parsed = _alone(_test(file, found))
    return parsed if isinstance(parsed, ParsedTest) else None


def _alone(outcome: _Outcome) -> ParsedModel | ParsedTest | None:
    if outcome.diagnostics or outcome.of_model:
        raise ProjectError((*outcome.diagnostics, *outcome.of_model))
    return outcome.parsed


def parse_text(name: str, sql: str) -> Query:
    """Parse the SQL of a view from a catalog, which has no file; `name` replaces its path. Raises ProjectError."""
    from mvbuild.parse.sql import parse_query

    query, diagnostics = parse_query(MappedText.of(SourceFile(name, sql)))
    if query is None or diagnostics:
        raise ProjectError(diagnostics)
    return query


def _model(model: ModelFile, file: ParsedFile) -> _Outcome:
    config, problems = model_config((*model.layers, *file.layers))
    problems = without_unset(problems, file.rendering)
    if not config.enabled and file.has_text:
        return _Outcome(parsed=None, diagnostics=problems, enabled=False)
    found = (*file.rendering, *problems)
    wrong = (*(d for d in found if d.severity == "error"), *file.sql)
    if file.query is None and not wrong:
        return _Outcome(parsed=None, diagnostics=found)
    # Wrong as it is, it has a place in the graph: its errors block what reads it, and nothing else.
    query = file.query if not file.sql else None
    nothing = Query(sql=file.text or MappedText.of(SourceFile(model.file.path, "")), reads=(), columns=None)
    parsed = ParsedModel(
        name=model.name,
        file=model.file,
        folders=model.folders,
        config=config,
        properties=model.properties,
        query=query or nothing,
        problems=wrong,
        knows_settings=all(d.code in _UNRESOLVED for d in found if d.severity == "error"),
        mentions=() if query else tuple(_mentions(file, model.file.text)),
        version=model.version,
    )
    return _Outcome(parsed=parsed, diagnostics=tuple(d for d in found if d.severity != "error"))


def _mentions(file: ParsedFile, text: str) -> Iterator[tuple[str, ...]]:
    """The names that ref() got, also in macros, and all that the text has."""
    yield from ((names[-1],) for kind, names, _ in file.asked if kind in ("ref", "ref_version"))
    yield from dict.fromkeys(tuple(part.strip("` \t\n") for part in found.split(".")) for found in _DOTTED.findall(text))


def _own(model: ModelFile) -> Own:
    return Own(model=model.name).configured(model.layers)


def _is_disabled(layers: Iterable[Layer]) -> bool:
    """Whether the project or YAML file disables a model, so that its template need not be rendered."""
    settings = [layer["enabled"].value for layer in layers if "enabled" in layer]
    return bool(settings) and settings[-1] is False


def _test(file: SourceFile, found: ParsedFile) -> _Outcome:
    settings = {key: setting for layer in found.layers for key, setting in layer.items()}
    labels, wrong = _labels(settings)
    problems = without_unset((*_test_problems(settings), *wrong), found.rendering)
    if "enabled" in settings and settings["enabled"].value is False:
        return _Outcome(parsed=None, diagnostics=problems, enabled=False)
    query = found.query
    is_warning = "severity" in settings and settings["severity"].value == "warn"
    name = PurePosixPath(file.path).stem
    severity: Literal["error", "warn"] = "warn" if is_warning else "error"
    counting = Counting() if problems else counting_of({key: setting.value for key, setting in settings.items()})
    group = str(settings["group"].value) if "group" in settings else None
    parsed = ParsedTest(name=name, file=file, severity=severity, query=query, counting=counting, group=group, **labels) if query else None
    return _Outcome(parsed=parsed, diagnostics=(*found.rendering, *problems, *found.sql))


def _labels(settings: Mapping[str, Setting]) -> tuple[Mapping[str, Any], tuple[Diagnostic, ...]]:
    """`tags` and `meta`, and what is wrong with them."""
    found: dict[str, Any] = {}
    wrong: list[Diagnostic] = []
    for key in _LABELS.keys() & settings.keys():
        try:
            found[key] = _LABELS[key](key, settings[key])
        except Unfit as exc:
            wrong.append(exc.diagnostic)
    return found, tuple(wrong)


def _test_problems(settings: Mapping[str, Setting]) -> Iterator[Diagnostic]:
    for key, setting in settings.items():
        if key not in _TEST_SETTINGS:
            help = _INSTEAD.get(key) or did_you_mean(key, _TEST_SETTINGS)
            yield error("unknown-key", f"Unknown setting '{key}' in a SQL test", setting.key or setting.span, help=help)
        elif key == "enabled" and not isinstance(setting.value, bool):
            yield error("wrong-type", "'enabled' must be true or false", setting.span)
        elif key == "group" and not isinstance(setting.value, str):
            yield error("wrong-type", "'group' must be a string", setting.span)
        elif key == "severity" and setting.value not in ("error", "warn"):
            yield error("wrong-type", "'severity' must be 'error' or 'warn'", setting.span)
        elif key in COUNTING and (problem := problem_of(key, setting.value)):
            yield error("wrong-type", problem, setting.span)


def _reading_enabled(outcome: _Outcome, disabled: Collection[str]) -> _Outcome:
    """The same, with an error for each read of something that is disabled."""
    parsed = outcome.parsed
    reads = [r for r in parsed.query.reads if r.kind == "ref" and r.parts[0].lower() in disabled] if parsed else []
    wrong = tuple(
        error("unresolved-ref", f"'{read.parts[0]}' is disabled", read.span, help="Enable it, or disable what reads it.") for read in reads
    )
    if isinstance(parsed, ParsedModel) and wrong:
        return replace(outcome, parsed=replace(parsed, problems=(*parsed.problems, *wrong)))
    return replace(outcome, diagnostics=(*outcome.diagnostics, *wrong)) if wrong else outcome
