"""macro files -> the tests that they define, `{% test name(model, column_name) %}`; and what is wrong with the uses of these in YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import Diagnostic, Note, did_you_mean, error
from mvbuild.project.keys import TESTS
from mvbuild.project.loaded import DataTest
from mvbuild.source import SourceFile, Span

_HEAD = re.compile(r"\{%[-+]?\s*(?:data_)?test\s+(\w+)\s*\(")
_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomTest:
    """A test that the project defines. `arguments`: name -> whether it must be given."""

    name: str
    arguments: Mapping[str, bool]
    span: Span


def custom_tests(files: Iterable[SourceFile], report: list[Diagnostic]) -> Mapping[str, CustomTest]:
    """By name."""
    found: dict[str, CustomTest] = {}
    for file in files:
        # A comment of the same length: places stay what they are.
        text = _COMMENT.sub(lambda comment: " " * len(comment[0]), file.text)
        for head in _HEAD.finditer(text):
            test = CustomTest(name=head[1], arguments=dict(_arguments(text, head.end())), span=Span(file, *head.span(1)))
            other = found.setdefault(test.name, test)
            if test.name in TESTS:
                report.append(error("duplicate-name", f"The test '{test.name}' is built in", test.span, help="Give yours another name."))
            elif other is not test:
                notes = (Note(message="first defined here", span=other.span),)
                report.append(error("duplicate-name", f"Duplicate test '{test.name}'", test.span, notes=notes))
    return found


def problems(tests: Iterable[DataTest], known: Mapping[str, CustomTest]) -> Iterator[Diagnostic]:
    """Uses of tests that do not exist, or with other arguments than they have. A test of a package has a dot in its name: see parse."""
    for use in tests:
        if use.kind in TESTS or "." in use.kind:
            continue
        test = known.get(use.kind)
        if test is None:
            yield _unknown(use, known)
            continue
        named = {"column_name"} if use.column else set()
        for name in use.arguments:
            if name not in test.arguments:
                message = f"Unknown argument '{name}' of the test '{test.name}'"
                yield error("unknown-key", message, use.places.get(name, use.span), help=did_you_mean(name, test.arguments))
        for name, required in test.arguments.items():
            if required and name != "model" and name not in use.arguments and name not in named:
                yield error("missing-key", f"The test '{test.name}' needs '{name}'", use.span)
        if use.column and "column_name" not in test.arguments:
            help = "Move it to `data_tests:` of the table, or add the argument to the test."
            yield error(
                "unknown-key", f"The test '{test.name}' has no argument 'column_name', which a column gives it", use.span, help=help
            )


def _unknown(use: DataTest, known: Mapping[str, CustomTest]) -> Diagnostic:
    near = did_you_mean(use.kind, (*TESTS, *known))
    own = f"For your own rule, write `{{% test {use.kind}(model, column_name) %}}` in the macros or tests/generic folder."
    return error("unknown-key", f"Unknown test '{use.kind}'", use.span, help=near if near.startswith("Did") else f"{near} {own}")


def _arguments(text: str, start: int) -> Iterator[tuple[str, bool]]:
    """The parameters in the parentheses that begin there, up to the closing one."""
    depth, quoted, part = 0, "", ""
    for letter in text[start:]:
        if quoted:
            quoted = "" if letter == quoted else quoted
        elif letter in "'\"":
            quoted = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}" and depth:
            depth -= 1
        elif letter in "),":
            name, _, default = part.partition("=")
            if name.strip():
                yield name.strip(), not default
            part = ""
            if letter == ")":
                return
            continue
        part += letter
