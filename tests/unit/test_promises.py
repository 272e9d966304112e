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


_NO_PROMISE = (
    "What Spark, Trino and BI tools get from a materialized view that they read by its name.",
    "A materialized view over another one.",
    "A materialized view.",
)
"""Comments that only introduce what follows."""


def comments() -> list[str]:
    """Sentences of the comments in the files of `mvbuild init`: a comment of several lines is one text, except for a list of values."""
    found: list[str] = []
    for file in sorted(INIT.rglob("*.yml")) + sorted(INIT.rglob("*.sql")):
        lines: list[str] = []
        for line in [*file.read_text(encoding="utf-8").splitlines(), ""]:
            text = re.search(r"(?:^\s*(?:#|--)|\s#) (.*)", line)
            if text and "yaml-language-server" not in line and not text[1].startswith("`"):
                lines.append(text[1])
                if line.lstrip().startswith(("#", "--")):
                    continue
            elif text and "yaml-language-server" not in line:
                found += _split(lines)
                lines = [text[1]]
                continue
            found += _split(lines)
            lines = []
    return found


def _split(lines: list[str]) -> list[str]:
    return re.findall(r"\S.*?[.!?](?= [A-Z`]| mvbuild |$)|\S.*?$", " ".join(lines))


def section(begin: str, end: str) -> str:
    return README[README.index(begin) + len(begin) : README.index(end)]


def test_every_promise_of_readme_is_listed() -> None:
    intro = section("# mvbuild\n", "With Python 3.10").partition("up to date.")[2]
    benefits = section("## What you get\n", "[docs/promises.md]")
    found = [*sentences(intro), *sentences(benefits)]
    assert len(found) > 20
    assert [sentence for sentence in found if sentence not in rows()] == []


def test_every_comment_of_an_initialised_project_is_listed() -> None:
    found = comments()
    assert len(found) > 20
    assert [sentence for sentence in found if sentence not in (*rows(), *_NO_PROMISE)] == []


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
