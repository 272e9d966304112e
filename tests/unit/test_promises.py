"""docs/promises.md -> every promise of README is on it, word by word, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/promises.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
INIT = ROOT / "templates/mvbuild_templates/init"
ROW = re.compile(r"^\| (?!promise |---)(.*) \| (`.*`) \|$", re.MULTILINE)


def rows() -> dict[str, list[str]]:
    return {found[1]: re.findall(r"`([^`]+)`", found[2]) for found in ROW.finditer(PAGE)}


def plain(text: str) -> str:
    """One line, without the marks of Markdown and comments."""
    text = re.sub(r"^\s*(?:#|--|\*)\s?", " ", text, flags=re.MULTILINE)
    return " ".join(text.replace("**", "").replace("#", "").split())


def sentences(text: str) -> list[str]:
    return re.findall(r"\S.*?[.!?](?= [A-Z`]| mvbuild |$)", plain(text))


def section(begin: str, end: str) -> str:
    return README[README.index(begin) + len(begin) : README.index(end)]


def test_every_promise_of_readme_is_listed() -> None:
    intro = section("# mvbuild\n", "With Python 3.10").partition("up to date.")[2]
    benefits = section("## What you get\n", "[docs/promises.md]")
    found = [*sentences(intro), *sentences(benefits)]
    assert len(found) > 20
    assert [sentence for sentence in found if sentence not in rows()] == []


def test_every_promise_on_the_page_is_made() -> None:
    """In README, in the files of `mvbuild init`, or in its help."""
    files = [*INIT.rglob("*.*"), ROOT / "compiler/mvbuild/cli/init.py"]
    made = " ".join(plain(text) for text in (README, *(f.read_text(encoding="utf-8") for f in files if f.is_file() and f.suffix != ".pyc")))
    assert [promise for promise in rows() if plain(promise) not in made] == []


def test_every_test_on_the_page_exists() -> None:
    named = {test for tests in rows().values() for test in tests}
    defined = {}
    for path in {test.partition("::")[0] for test in named}:
        tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
        defined[path] = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert [test for test in sorted(named) if test.partition("::")[2] not in defined[test.partition("::")[0]]] == []
    assert all(rows().values())
