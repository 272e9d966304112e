"""`compile` and `lint` report what is wrong with unit tests, so that CI finds it without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mvbuild.cli.main import group
from unit.worlds import write_project

FILES = {
    "mvbuild.yml": "name: shop\n",
    "models/sources.yml": "sources:\n  - name: raw\n    tables: [{name: orders}, {name: customers}]\n",
    "models/daily.sql": "SELECT o.id FROM {{ source('raw', 'orders') }} o JOIN {{ source('raw', 'customers') }} c ON c.id = o.id\n",
    "models/top.sql": "SELECT id FROM {{ ref('daily') }}\n",
}
UNITS = """unit_tests:
  - name: joined
    model: daily
    given:
      - {input: "source('raw', 'orders')", rows: [{id: 1}]}
      - {input: "source('raw', 'customers')", rows: [{id: 1}]}
    expect: {rows: [{id: 1}]}
"""
WRONG = {
    "an unknown model": (UNITS.replace("model: daily", "model: dayly"), ["2:11 names an unknown model 'dayly'"]),
    "an unknown input": (UNITS.replace("'orders'", "'order'"), ["5:17 Unknown input source('raw', 'order')"]),
    "no rows for a table": (
        UNITS.replace("""      - {input: "source('raw', 'customers')", rows: [{id: 1}]}\n""", ""),
        ["2:11 gives no rows for source('raw', 'customers')"],
    ),
    "a name twice": (UNITS + UNITS.partition("\n")[2], ["8:11 has two unit tests 'joined'"]),
    "too many rows": (UNITS.replace("rows: [{id: 1}]}", "random: 1000000000000}", 1), ["5:52 'random' must be at most 100,000"]),
    "two faults": (
        UNITS.replace("'orders'", "'order'").replace("'customers'", "'customer'"),
        ["5:17 Unknown input source('raw', 'order')", "6:17 Unknown input source('raw', 'customer')"],
    ),
}


def call(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(group, [*arguments, "--project-dir", str(root)], standalone_mode=False)


@pytest.mark.parametrize("command", ["compile", "compile --select top", "lint"])
@pytest.mark.parametrize("case", WRONG)
def test_each_is_an_error_with_a_place(case: str, command: str, tmp_path: Path) -> None:
    units, expected = WRONG[case]
    write_project(tmp_path, {**FILES, "models/units.yml": units})
    for _ in ("without a cache", "with one"):
        done = call(tmp_path, *command.split())
        assert done.return_value == 2, done.output
        assert done.stderr.count("error[") == len(expected), done.stderr
        for place, message in (text.split(" ", 1) for text in expected):
            assert message in done.stderr
            assert f"models/units.yml:{place}\n" in done.stderr


def test_right_ones_are_no_error_and_other_commands_need_none(tmp_path: Path) -> None:
    write_project(tmp_path, {**FILES, "models/units.yml": UNITS})
    assert [call(tmp_path, command).return_value for command in ("compile", "compile", "lint")] == [0, 0, 0]
    write_project(tmp_path, {"models/units.yml": UNITS.replace("model: daily", "model: dayly")})
    assert [call(tmp_path, command).return_value for command in ("compile", "ls")] == [2, 0]


def test_a_test_of_a_model_that_does_not_compile_adds_nothing(tmp_path: Path) -> None:
    write_project(tmp_path, {**FILES, "models/units.yml": UNITS, "models/daily.sql": "SELECT v:a[0].b AS id FROM raw.orders\n"})
    done = call(tmp_path, "compile")
    assert (done.return_value, done.stderr.count("error[")) == (2, 1), done.stderr
