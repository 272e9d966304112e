"""SourceFile -> its allowances (`-- mvbuild: allow(rule) reason`); findings + allowances -> remaining findings, and wrong allowances."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from mvbuild.dataclass import dataclass
from mvbuild.diagnostics import did_you_mean
from mvbuild.lint.comments import Comment, comments
from mvbuild.lint.model import Edit, Finding, Fix, Found
from mvbuild.lint.rules import BY_CODE
from mvbuild.lint.rules.allowed import UNKNOWN, UNREASONED, UNUSED
from mvbuild.source import SourceFile, Span

_DIRECTIVE = re.compile(r"[-+*\s]*mvbuild\s*:\s*allow\b(?P<rest>.*)", re.DOTALL | re.IGNORECASE)
_LISTED = re.compile(r"\s*\((?P<rules>[^()]*)\)(?P<reason>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A comment that allows rules. `rules`: each name with its place."""

    comment: Comment
    rules: tuple[tuple[str, Span], ...]
    has_reason: bool
    lines: range
    """The lines that it applies to."""


def allowances(file: SourceFile) -> tuple[Allowance, ...]:
    """In the order of the file."""
    if "mvbuild" not in file.text.lower():
        return ()
    found = comments(file, is_yaml=PurePosixPath(file.path).suffix in (".yml", ".yaml"))
    alone = {line for comment in found if comment.is_alone for line in comment.lines}
    return tuple(read for comment in found if (read := _read(comment, alone)))


def _read(comment: Comment, alone: Collection[int]) -> Allowance | None:
    directive = _DIRECTIVE.fullmatch(comment.body.text)
    if directive is None:
        return None
    listed = _LISTED.fullmatch(directive["rest"])
    last = comment.lines[-1]
    if comment.is_alone:
        # Several comments may be above a line.
        last += 1
        while last in alone:
            last += 1
    start = comment.body.start + directive.start("rest")
    rules = tuple(_names(listed, comment.body.file, start)) if listed else ()
    has_reason = bool(listed and re.search(r"\w", listed["reason"]))
    return Allowance(comment=comment, rules=rules, has_reason=has_reason, lines=range(comment.lines[0], last + 1))


def _names(listed: re.Match[str], file: SourceFile, start: int) -> Iterator[tuple[str, Span]]:
    for match in re.finditer(r"[^\s,]+", listed["rules"]):
        at = start + listed.start("rules")
        yield match[0].lower(), Span(file, at + match.start(), at + match.end())


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A file whose allowances are judged. `ran`: the rules that would have reported a finding there."""

    file: SourceFile
    allowances: tuple[Allowance, ...]
    ran: frozenset[str]


def applied(
    findings: Iterable[Finding], known: Mapping[str, tuple[Allowance, ...]], own_files: Mapping[str, str]
) -> tuple[list[Finding], set[tuple[str, int]]]:
    """The findings that are not allowed, and the places (path, offset) of the names in allowances that were used.

    `own_files`: node -> path of the model's file.
    """
    left: list[Finding] = []
    used: set[tuple[str, int]] = set()
    for finding in findings:
        allowing = list(_allowing(finding, known, own_files.get(finding.node or "", "")))
        used.update((span.file.path, span.start) for span in allowing)
        if not allowing:
            left.append(finding)
    return left, used


def _allowing(finding: Finding, known: Mapping[str, tuple[Allowance, ...]], own: str) -> Iterator[Span]:
    line = finding.span.position[0]
    here = [allowance for allowance in known.get(finding.span.file.path, ()) if line in allowance.lines]
    for allowance in known.get(own, ()) if finding.found.of_file else here:
        yield from (span for name, span in allowance.rules if name == finding.code)
    if finding.found.of_file and finding.span.file.path != own:
        yield from (span for allowance in here for name, span in allowance.rules if name == finding.code)


def judged(files: Iterable[Judged], used: Collection[tuple[str, int]]) -> Iterator[tuple[str, Found]]:
    """(code, what is wrong) for each allowance that is unused, unknown or without a reason."""
    for one in files:
        for allowance in one.allowances:
            yield from _of(allowance, one.ran, used)


def _of(allowance: Allowance, ran: Collection[str], used: Collection[tuple[str, int]]) -> Iterator[tuple[str, Found]]:
    comment = allowance.comment
    if not allowance.rules:
        yield UNKNOWN.code, Found(message="This allowance names no rule", span=comment.span)
        return
    unused = [
        (name, span) for name, span in allowance.rules if name in ran and name in BY_CODE and (span.file.path, span.start) not in used
    ]
    for name, span in allowance.rules:
        if name not in BY_CODE:
            yield UNKNOWN.code, Found(message=f"Unknown rule '{name}'", span=span, help=did_you_mean(name, BY_CODE))
    for name, span in unused:
        message = f"'{name}' reports nothing here"
        yield UNUSED.code, Found(message=message, span=span, fix=_fix(allowance) if len(unused) == len(allowance.rules) else None)
    if not allowance.has_reason and len(unused) < len(allowance.rules):
        yield UNREASONED.code, Found(message="This allowance has no reason", span=comment.span)


def _fix(allowance: Allowance) -> Fix | None:
    """Remove the comment, and its line if there is nothing else on it."""
    span = allowance.comment.span
    text = span.file.text
    start, end = span.start, span.end
    if allowance.comment.is_alone:
        start = text.rfind("\n", 0, start) + 1
        end = text.find("\n", end) + 1 or len(text)
    else:
        start = len(text[:start].rstrip(" \t"))
        if text[end : end + 1] not in ("", "\n"):
            return None
    return Fix(edits=(Edit(Span(span.file, start, end), ""),))
