"""docs/, README.md and the program -> the same facts in each of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from mvbuild.cli.main import COMMANDS, group
from mvbuild.diagnostics import CODES, reference
from mvbuild.incremental import reference as operators
from mvbuild.project import keys, settings
from mvbuild.project import reference as configuration

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "sample_project/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = sorted((ROOT / "compiler").rglob("*.py"))


def test_the_page_of_errors_is_current() -> None:
    """`python -m mvbuild.diagnostics.reference > docs/errors.md` writes it."""
    assert (ROOT / "docs/errors.md").read_text(encoding="utf-8") == reference.page()


def test_the_page_of_keys_is_current() -> None:
    """`python -m mvbuild.project.reference > docs/configuration.md` writes it."""
    assert (ROOT / "docs/configuration.md").read_text(encoding="utf-8") == configuration.page()


def test_the_page_of_operators_and_reasons_is_current() -> None:
    """`python -m mvbuild.incremental.reference > docs/incremental-table.md` writes it."""
    assert (ROOT / "docs/incremental-table.md").read_text(encoding="utf-8") == operators.page()


def test_every_key_is_on_the_page() -> None:
    blocks = [value for value in vars(keys).values() if isinstance(value, keys.Block)]
    known = {name for block in blocks for name in block.keys} | {*settings.MODEL_SETTINGS, *settings.SEED_SETTINGS}
    known |= {alias for block in blocks for alias in block.aliases} | {*settings.ALIASES}
    known |= {f"{test}: {name}" for test, arguments in keys.TEST_ARGUMENTS.items() for name in arguments}
    page = configuration.page()
    assert [name for name in sorted(known) if f"`{name}`" not in page] == []


def strings_of(tree: ast.AST) -> set[str]:
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def codes_given(tree: ast.AST) -> set[str]:
    """The literal first arguments of error(), warning() and EngineError()."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args)
    makers = ("error", "warning", "EngineError", "Diagnostic", "_record", "stop", "_Missing")
    named = (c for c in calls if (c.func.id if isinstance(c.func, ast.Name) else getattr(c.func, "attr", "")) in makers)
    return {c.args[0].value for c in named if isinstance(c.args[0], ast.Constant) and isinstance(c.args[0].value, str)}


def test_every_code_is_used_and_known() -> None:
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in SOURCES if file.name != "codes.py"}
    used = set().union(*(strings_of(tree) for tree in trees.values()))
    assert [code for code in CODES if code not in used] == []
    given = set().union(*(codes_given(tree) for tree in trees.values()))
    assert len(given) > 30
    assert sorted(given - CODES.keys()) == []


def test_every_code_says_what_to_do() -> None:
    for name, code in CODES.items():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
        assert code.title.endswith(".")
        assert code.help.endswith(".")


def test_the_readme_names_every_command_and_option() -> None:
    named = set(re.findall(r"`mvbuild (\w+)", README)) | set(re.findall(r"^\| `.*?, `(\w+)`", README, re.MULTILINE))
    assert named == COMMANDS.keys()
    for line in re.findall(r"^\| `mvbuild (\w+).*", README, re.MULTILINE):
        row = next(row for row in README.splitlines() if row.startswith(f"| `mvbuild {line}"))
        command = group.get_command(None, line)  # type: ignore[arg-type]
        assert command is not None
        options = {name for p in command.params for name in p.opts}
        assert set(re.findall(r"`(--[\w-]+)`", row)) <= options


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    names = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    listed = re.findall(r"^([\w-]+)$", "\n".join(re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL)), re.MULTILINE)
    assert sorted(listed) == sorted(names)
    assert [name for name in sorted(names) if f"]({name}.md)" not in index] == []
