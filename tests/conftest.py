"""--update-golden: expected texts of tests/golden are rewritten; review the diff."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from seeds import FIRST
from shares import SHARE, dealt

# A test that fails only on a busy machine says nothing about the program. With a seed, `--hypothesis-seed` chooses the examples.
settings.register_profile("no clock", deadline=None, derandomize=not FIRST, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")

# Processes that tests start compile each module once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

GOLDEN = Path(__file__).parent / "golden"
_LONGEST = (
    "test_random_queries",
    "test_sample_everywhere",
    "test_auxiliary_views",
    "test_concurrent_commands",
    "test_sample_project",
    "test_clock_faults",
    "test_killed_runs",
    "test_commands",
    "test_atomic",
    "test_two_runs",
    "test_source_types",
    "test_change",
    "test_refresh_histories",
    "test_auxiliary_view_lives",
    "test_team_template",
    "test_rest_lost_answers",
    "test_storage_formats",
    "test_field_bugs",
    "test_warm_engine",
    "test_incremental",
    "test_life",
    "test_pinning",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden/*.txt as the program is now")


def pytest_configure(config: pytest.Config) -> None:
    """Without `-m`, proofs run only if you name their file."""
    if not config.option.markexpr and not any(".py" in argument for argument in config.args):
        config.option.markexpr = "not proof"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first: a process that gets one of them last works alone while the other waits. pytest-xdist keeps this order because
    of `--no-loadscope-reorder` in pyproject.toml. Of the proofs, those of the share."""
    items.sort(key=lambda item: _LONGEST.index(item.path.stem) if item.path.stem in _LONGEST else len(_LONGEST))
    proofs = [item for item in items if item.get_closest_marker("proof")]
    numbers = dealt((item.path for item in proofs), SHARE.count)
    others = {item for item, number in zip(proofs, numbers, strict=True) if number != SHARE.number}
    if others:
        config.hook.pytest_deselected(items=list(others))
        items[:] = [item for item in items if item not in others]


def pytest_report_header() -> str:
    return f"MVBUILD_TEST_SEED={FIRST} MVBUILD_PROOF_SHARE={SHARE}"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the file of a name."""

    def check(name: str, text: str) -> None:
        file = GOLDEN / f"{name}.txt"
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="")
        assert file.exists(), f"{file} is missing; pytest --update-golden writes it"
        assert text == file.read_text(encoding="utf-8")

    return check
