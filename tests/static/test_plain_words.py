"""strings, docstrings, comments and pages -> none of the words that make technical English read as if it were translated."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORDS = re.compile(
    r"\b(mend(s|ed|ing)?|nobody|somebody|stands?|stood|told|tells?|anew|dubious|there twice|small letters|whole numbers?|says no|say no"
    r"|(?<!there )(is|are) no (?!longer\b)[a-z]+)\b",
    re.IGNORECASE,
)
PLAIN = ("stands for", "stand for", "standing", "stand-in")
"""Idioms that contain one of the words."""
CODE = sorted(path for top in ("compiler", "templates") for path in (ROOT / top).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
TEXTS = sorted(
    path
    for top in ("docs", "sample_project", "templates", "README.md")
    for path in ((ROOT / top).rglob("*") if (ROOT / top).is_dir() else [ROOT / top])
    if path.suffix in (".md", ".sql", ".yml", ".yaml") and "target" not in path.parts
)


def found(text: str) -> list[str]:
    flat = " ".join(text.split())
    for idiom in PLAIN:
        flat = flat.replace(idiom, "")
    return [flat[max(0, match.start() - 40) : match.end() + 20] for match in WORDS.finditer(flat)]


def texts_of(source: str, *, docstrings_only: bool = False) -> Iterator[str]:
    """The strings with more than one word, or only the docstrings, and the comments of a module."""
    for node in ast.walk(ast.parse(source)):
        value = node.value if isinstance(node, ast.Expr) and docstrings_only else None if docstrings_only else node
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and " " in value.value:
            yield value.value
    yield from (token.string for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type == tokenize.COMMENT)


@pytest.mark.parametrize("folder", sorted({path.parent for path in CODE}), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_code_speaks_plainly(folder: Path) -> None:
    files = [path for path in CODE if path.parent == folder]
    assert {path.name: hits for path in files if (hits := [h for t in texts_of(path.read_text(encoding="utf-8")) for h in found(t)])} == {}


@pytest.mark.parametrize("folder", sorted({path.parent for path in TESTS}), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_tests_explain_plainly(folder: Path) -> None:
    """Their strings may have anything in them: data, names and wrong texts."""
    files = {path.name: path.read_text(encoding="utf-8") for path in TESTS if path.parent == folder}
    assert {
        name: hits for name, text in files.items() if (hits := [h for t in texts_of(text, docstrings_only=True) for h in found(t)])
    } == {}


def test_pages_speak_plainly() -> None:
    pages = {path.relative_to(ROOT).as_posix(): found(path.read_text(encoding="utf-8")) for path in TEXTS}
    assert {name: hits for name, hits in pages.items() if hits} == {}


@pytest.mark.parametrize(
    "text",
    [
        "Mend the value",
        "'x' is no whole number",
        "The key 'tags' is there twice",
        "Write it anew",
        "old.json is no JSON",
        "in small letters",
    ],
)
def test_the_words_are_found(text: str) -> None:
    assert found(text)


@pytest.mark.parametrize("text", ["There is no such refresh", "it is no longer kept", "`*` stands for all columns"])
def test_plain_english_is_not(text: str) -> None:
    assert found(text) == []
