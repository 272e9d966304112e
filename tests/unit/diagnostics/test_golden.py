"""every code -> the diagnostic as printed, word by word, with carets under what the user wrote."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mvbuild.diagnostics import CODES
from mvbuild.lint.rules import RULES
from unit.cli.bad_input import Case, Mark, call, lay_out
from unit.diagnostics.cases import CASES, ELSEWHERE
from unit.lint.linted import SHOP

ALLOWANCES = ("unused-allowance", "unknown-allowance", "allowance-without-reason")
"""They say something of what other rules find."""
TESTS = Path(__file__).parents[2]


def told(case: Case, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[str, Mark | None]:
    root.mkdir()
    mark = lay_out(root, case.files)
    outcome = call(case.command, root, {}, monkeypatch, capsys)
    said = outcome.stderr + (outcome.stdout if case.command.startswith("lint") else "")
    return said.replace(str(root), "<project>"), mark


@pytest.mark.parametrize("code", dict.fromkeys(case.code for case in CASES))
def test_diagnostic(
    code: str, golden: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = []
    for number, case in enumerate(case for case in CASES if case.code == code):
        said, mark = told(case, tmp_path / str(number), monkeypatch, capsys)
        texts.append(f"# {case.name}\n$ mvbuild {case.command}\n{said}")
        block = next(b for b in re.split(r"\n\n(?=\w+\[)", said) if re.match(rf"(error|warning)\[{code}\]", b))
        assert "\n  help: " in block, said
        if mark:
            carets = re.search(r"(\^+)\n", block)
            assert f"  --> {mark.place}\n" in block, said
            assert carets
            assert len(carets[1]) == mark.width or mark.width > 100, said
    golden(f"diagnostics/{code}", "\n".join(texts))


@pytest.mark.parametrize("rule", [r for r in RULES if r.needs != "catalog"], ids=lambda r: r.code)
def test_finding(
    rule: object, golden: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example of the rule's page."""
    code: str = rule.code  # type: ignore[attr-defined]
    case = Case(
        name=code, code=code, says="", files={**SHOP, **rule.wrong}, command="lint" if code in ALLOWANCES else f"lint --rule {code}"
    )  # type: ignore[attr-defined]
    said, _ = told(case, tmp_path / "p", monkeypatch, capsys)
    assert f"[{code}]: " in said
    golden(f"diagnostics/lint-{code}", f"$ mvbuild {case.command}\n{said}")


def test_every_code_has_a_golden_text_or_a_reason_to_have_none() -> None:
    shown = {case.code for case in CASES}
    assert not shown & set(ELSEWHERE)
    assert shown | set(ELSEWHERE) == set(CODES)
    assert [path for path in ELSEWHERE.values() if not (TESTS / path).is_file()] == []
