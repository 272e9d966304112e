"""docs/glossary.md -> at most 40 terms, in order, each in use; and no other word for the same thing in pages and code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs/glossary.md"
ROWS = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.*?) ?\|$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)[2:]
ORIGINS = {"Iceberg", "Spark", "dbt", "view maintenance", "mvbuild"}


def words_of(path: Path) -> str:
    return " ".join(path.read_text(encoding="utf-8").lower().split())


PAGES = {path: words_of(path) for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if path != GLOSSARY}
CODE = {path: words_of(path) for path in sorted((ROOT / "compiler").rglob("*.py"))}


def is_in(term: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(term.lower())}s?\b", text) is not None


def test_there_are_at_most_40_terms_in_order() -> None:
    names = [term.lower() for term, *_ in ROWS]
    assert 30 <= len(names) <= 40
    assert names == sorted(names)
    assert {origin for _, _, origin, _ in ROWS} <= ORIGINS


@pytest.mark.parametrize("term", [re.sub(r" \(.*\)", "", part) for term, *_ in ROWS for part in term.split(", ")])
def test_a_term_is_in_use(term: str) -> None:
    assert sum(is_in(term, text) for text in (*PAGES.values(), *CODE.values())) > 2


@pytest.mark.parametrize("other", [word for *_, others in ROWS for word in others.split(", ") if word])
def test_another_word_for_a_term_is_not_used(other: str) -> None:
    assert [str(path.relative_to(ROOT)) for path, text in {**PAGES, **CODE}.items() if is_in(other, text)] == []


def test_the_glossary_is_linked() -> None:
    assert "(docs/glossary.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(glossary.md)" in (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
