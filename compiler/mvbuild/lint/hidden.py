"""findings -> the same, with stars instead of secrets in the texts that their spans refer to, so that no renderer can print a secret."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mvbuild.diagnostics import Note
from mvbuild.lint.model import Edit, Finding, Fix
from mvbuild.lint.rules.secrets import secrets
from mvbuild.source import SourceFile, Span


def without_secrets(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    masked: dict[int, SourceFile] = {}

    def shown(span: Span) -> Span:
        file = masked.get(id(span.file))
        if file is None:
            file = masked[id(span.file)] = _masked(span.file)
        return Span(file, span.start, span.end)

    def note(one: Note) -> Note:
        return replace(one, span=shown(one.span)) if one.span else one

    def fix(one: Fix) -> Fix:
        return replace(one, edits=tuple(Edit(shown(edit.span), edit.new) for edit in one.edits))

    return tuple(
        replace(
            finding,
            found=replace(
                finding.found,
                span=shown(finding.span),
                notes=tuple(note(n) for n in finding.found.notes),
                fix=fix(finding.found.fix) if finding.found.fix else None,
            ),
        )
        for finding in findings
    )


def _masked(file: SourceFile) -> SourceFile:
    found = secrets(file)
    if not found:
        return file
    text = file.text
    for _, span in found:
        stars = "".join("\n" if c == "\n" else "*" for c in span.text)
        text = text[: span.start] + stars + text[span.end :]
    return SourceFile(file.path, text)
