"""findings -> JSON, workflow commands of GitHub, SARIF."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mvbuild.diagnostics import Diagnostic, error
from mvbuild.lint.model import Edit, Finding, Fix, Found
from mvbuild.lint.output import to_github, to_json, to_sarif
from mvbuild.lint.rules import RULES
from mvbuild.source import SourceFile, Span
from unit.lint.linted import QUIET, findings

ODD = SourceFile("models/a b,ä:%.sql", "-- 😀\nselect 😀 x,\n  y\n")


def finding(message: str, start: int, end: int, *, level: Any = "warning", fix: Fix | None = None) -> Finding:
    return Finding(
        code="select-star", level=level, found=Found(message=message, span=Span(ODD, start, end), help="Do:\nthis, 100%.", fix=fix)
    )


def test_github_commands_are_escaped() -> None:
    lines = to_github([finding("a::b %0A,\r\n::error::c", 12, 15)], folder="my shop/").split("\n")
    assert lines == [
        "::warning file=my shop/models/a b%2Cä%3A%25.sql,line=2,endLine=2,col=8,endColumn=11,title=mvbuild (select-star)"
        "::a::b %250A,%0D%0A::error::c%0ADo:%0Athis, 100%25."
    ]


def test_github_has_columns_within_one_line_only() -> None:
    one = to_github([finding("m", 12, 20, level="info")])
    assert one.startswith("::notice ")
    assert "line=2,endLine=3,title" in one


def test_failures_of_the_project_are_errors() -> None:
    failed: list[Diagnostic] = [error("cycle", "Round", Span(ODD, 0, 1)), error("command-line", "Wrong")]
    assert [line.split(" ")[0] for line in to_github([], failed).split("\n")] == ["::error", "::error"]
    assert [(o["code"], o["severity"]) for o in json.loads(to_json([], failed))] == [("cycle", "error"), ("command-line", "error")]
    run = json.loads(to_sarif([], failed, version="1.0"))["runs"][0]
    assert run["invocations"] == [{"executionSuccessful": False}]
    assert [r["ruleId"] for r in run["results"]] == ["cycle", "command-line"]
    assert "locations" not in run["results"][1]


def test_json_says_all(tmp_path: Path) -> None:
    found = findings(tmp_path, {**QUIET, "models/m.sql": "select *\nfrom {{ ref('customers') }}\n"})
    (one,) = json.loads(to_json(found))
    assert one["location"] == {"file": "models/m.sql", "line": 1, "column": 8, "end_line": 1, "end_column": 9}
    assert (one["code"], one["severity"], one["node"], one["fixable"]) == ("select-star", "warning", "model.shop.m", True)
    assert set(one) == {"code", "severity", "message", "help", "location", "notes", "node", "fixable"}


def test_sarif_follows_its_schema() -> None:
    fix = Fix(edits=(Edit(Span(ODD, 12, 13), "a\nb"),))
    log = json.loads(
        to_sarif(
            [finding("m", 12, 13, fix=fix), finding("m", 12, 13), finding("n.", 14, 15, level="info")],
            version="0.1",
            folder="x y/",
            root="file:///repo/",
        )
    )
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.code for rule in RULES]
    assert all(rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error") for rule in rules)
    assert run["originalUriBaseIds"] == {"SRCROOT": {"uri": "file:///repo/"}}
    assert run["columnKind"] == "unicodeCodePoints"
    one, again, other = run["results"]
    assert rules[one["ruleIndex"]]["id"] == one["ruleId"] == "select-star"
    assert (one["level"], other["level"]) == ("warning", "note")
    assert one["message"]["text"].startswith("m. Do:")
    place = one["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "x%20y/models/a%20b%2C%C3%A4%3A%25.sql", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 2, "startColumn": 8, "endLine": 2, "endColumn": 9}
    change = one["fixes"][0]["artifactChanges"][0]
    assert change["replacements"] == [{"deletedRegion": place["region"], "insertedContent": {"text": "a\nb"}}]
    prints = [r["partialFingerprints"]["mvbuildFinding/v1"] for r in (one, again, other)]
    assert len(set(prints)) == 3
    assert all(re.fullmatch(r"[0-9a-f]{32}:\d+", p) for p in prints)


def test_fingerprints_stay_when_lines_move() -> None:
    moved = SourceFile(ODD.path, "\n\n" + ODD.text)
    later = Finding(code="select-star", level="warning", found=Found(message="m", span=Span(moved, 14, 15)))
    one, two = (
        json.loads(to_sarif([f], version="1"))["runs"][0]["results"][0]["partialFingerprints"] for f in (finding("m", 12, 13), later)
    )
    assert one == two
