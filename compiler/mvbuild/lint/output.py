"""findings -> JSON, GitHub's workflow commands, GitLab's code quality report, SARIF 2.1.0. For text see `diagnostics.render`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from mvbuild.diagnostics import CODES, Diagnostic
from mvbuild.diagnostics.render import location
from mvbuild.lint.model import Finding, identity
from mvbuild.lint.rules import BY_CODE
from mvbuild.source import Span

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_SARIF_LEVELS = {"error": "error", "warning": "warning", "info": "note", "off": "none"}
_QUALITY = {"error": "major", "warning": "minor", "info": "info"}
_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def to_json(findings: Iterable[Finding], failures: Iterable[Diagnostic] = ()) -> str:
    """A JSON array of objects {code, severity, message, help, location, notes, node, fixable}. `failures`: why nothing could be linted."""
    objects = [_object(d, None, False) for d in failures]
    objects += [_object(f.diagnostic, f.node, f.found.fix is not None) for f in findings]
    return json.dumps(objects, indent=2)


def _object(diagnostic: Diagnostic, node: str | None, fixable: bool) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "location": location(diagnostic.span),
        "notes": [{"message": n.message, "location": location(n.span)} for n in diagnostic.notes],
        "node": node,
        "fixable": fixable,
    }


# GitHub


def to_github(findings: Iterable[Finding], failures: Iterable[Diagnostic] = (), *, folder: str = "") -> str:
    """One workflow command per line. `folder`: from the repository to the project, such as `shop/`."""
    return "\n".join(_command(d, folder) for d in (*failures, *(f.diagnostic for f in findings)))


def _command(diagnostic: Diagnostic, folder: str) -> str:
    properties: dict[str, str | int] = {}
    if diagnostic.span is not None:
        (line, column), (end_line, end_column) = diagnostic.span.position, diagnostic.span.file.position(diagnostic.span.end)
        properties = {"file": folder + diagnostic.span.file.path, "line": line, "endLine": end_line}
        if line == end_line:
            # GitHub accepts columns only within one line.
            properties |= {"col": column, "endColumn": max(column, end_column)}
    properties["title"] = f"mvbuild ({diagnostic.code})"
    properties_text = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in properties.items())
    text = "\n".join(part for part in (diagnostic.message, diagnostic.help) if part)
    return f"::{_COMMANDS[diagnostic.severity]} {properties_text}::{_escaped(text)}"


def _escaped(text: str, signs: str = "") -> str:
    for sign in ("%", "\r", "\n", *signs):
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


# GitLab


def to_gitlab(findings: Iterable[Finding], failures: Iterable[Diagnostic] = (), *, folder: str = "", project: str = "mvbuild.yml") -> str:
    """A code quality report. Every entry needs a line; a finding without one is reported at the project file."""
    seen: Counter[str] = Counter()
    return json.dumps([_quality(d, folder, project, seen) for d in (*failures, *(f.diagnostic for f in findings))], indent=2)


def _quality(diagnostic: Diagnostic, folder: str, project: str, seen: Counter[str]) -> dict[str, Any]:
    span, own = diagnostic.span, identity(diagnostic)
    seen[own] += 1
    return {
        "description": " ".join(part for part in (diagnostic.message, diagnostic.help) if part),
        "check_name": diagnostic.code,
        "fingerprint": own if seen[own] == 1 else f"{own}:{seen[own]}",
        "severity": _QUALITY[diagnostic.severity],
        "location": {"path": folder + (span.file.path if span else project), "lines": {"begin": span.position[0] if span else 1}},
    }


# SARIF


def to_sarif(
    findings: Sequence[Finding], failures: Sequence[Diagnostic] = (), *, version: str, folder: str = "", root: str | None = None
) -> str:
    """One run of SARIF 2.1.0. `root`: the URI of the repository, ending with a slash."""
    rules = [_rule(code) for code in dict.fromkeys((*BY_CODE, *(d.code for d in failures)))]
    indexes = {rule["id"]: at for at, rule in enumerate(rules)}
    results = [_result(d, None, indexes, folder) for d in failures]
    results += [_result(f.diagnostic, f, indexes, folder) for f in findings]
    driver = {"name": "mvbuild", "version": version, "semanticVersion": version, "rules": rules}
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": not failures}],
        "results": _told_apart(results),
    }
    if root:
        run["originalUriBaseIds"] = {"SRCROOT": {"uri": root}}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(code: str) -> dict[str, Any]:
    rule = BY_CODE.get(code)
    if rule is None:
        title, help, level = (CODES[code].title, CODES[code].help, "error") if code in CODES else (code, "", "error")
        why = title
    else:
        title, help, level, why = rule.title, rule.help, rule.level, f"{rule.title} {rule.why}"
    shown: dict[str, Any] = {
        "id": code,
        "shortDescription": {"text": title},
        "fullDescription": {"text": why},
        "defaultConfiguration": {"enabled": level != "off", "level": _SARIF_LEVELS["warning" if level == "off" else level]},
    }
    return {**shown, "help": {"text": help}} if help else shown


def _result(diagnostic: Diagnostic, finding: Finding | None, indexes: Mapping[str, int], folder: str) -> dict[str, Any]:
    text = diagnostic.message if diagnostic.message.endswith(".") else f"{diagnostic.message}."
    made: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": indexes[diagnostic.code],
        "level": _SARIF_LEVELS[diagnostic.severity],
        "message": {"text": f"{text} {diagnostic.help}".strip()},
    }
    if diagnostic.span is not None:
        made["locations"] = [{"physicalLocation": _physical(diagnostic.span, folder)}]
        made["partialFingerprints"] = {"mvbuildFinding/v1": identity(diagnostic)}
    notes = [note for note in diagnostic.notes if note.span is not None]
    if notes:
        made["relatedLocations"] = [
            {"id": at, "physicalLocation": _physical(note.span, folder), "message": {"text": note.message}}
            for at, note in enumerate(notes)
            if note.span is not None
        ]
    fix = finding.found.fix if finding else None
    if fix is not None and finding is not None and finding.code in BY_CODE:
        replacements = [{"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.new}} for edit in fix.edits]
        artifact = _artifact(fix.edits[0].span, folder)
        made["fixes"] = [
            {
                "description": {"text": BY_CODE[finding.code].fix or BY_CODE[finding.code].help},
                "artifactChanges": [{"artifactLocation": artifact, "replacements": replacements}],
            }
        ]
    return made


def _physical(span: Span, folder: str) -> dict[str, Any]:
    return {"artifactLocation": _artifact(span, folder), "region": _region(span)}


def _artifact(span: Span, folder: str) -> dict[str, Any]:
    return {"uri": quote(folder + span.file.path), "uriBaseId": "SRCROOT"}


def _region(span: Span) -> dict[str, int]:
    (line, column), (end_line, end_column) = span.position, span.file.position(span.end)
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _told_apart(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Number equal findings, so that the second one is the second one again the next time."""
    seen: dict[str, int] = {}
    for result in results:
        for key, value in result.get("partialFingerprints", {}).items():
            seen[value] = seen.get(value, 0) + 1
            result["partialFingerprints"][key] = f"{value}:{seen[value]}"
    return results
