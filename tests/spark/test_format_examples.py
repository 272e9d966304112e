"""One small project in each storage format -> docs/examples: what mvbuild writes, with the ids of the run replaced by readable ones.

`pytest --update-golden` rewrites the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mvbuild.formats import metadata_file
from spark.projects import Project
from spark.shop import FILES, MakeProject, shop

pytestmark = pytest.mark.proof

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture(scope="module", params=["table-properties", "metadata-file"])
def built(request: pytest.FixtureRequest, project: MakeProject) -> tuple[str, Project]:
    """The project after two refreshes of its MV."""
    made = shop(project, {"mvbuild.yml": FILES["mvbuild.yml"].replace("+namespace: mart", f"+namespace: mart, {_setting(request.param)}")})
    assert made.refreshed() == {"active_customers", "revenue_daily"}
    made.sql("INSERT INTO lake.raw.orders VALUES (4, 2, DATE '2026-02-02', 7.00)")
    assert made.refreshed() == {"revenue_daily"}
    return request.param, made


def _setting(format_: str) -> str:
    return f"+storage: {{format: {format_}}}, +refresh_history: 2, +refresh_policy: incremental"


def test_the_example_of_each_format_is_what_is_written(built: tuple[str, Project], example: Callable[[str, Any], None]) -> None:
    format_, project = built
    view = project.view("mart.revenue_daily")
    if format_ == "metadata-file":
        file = Path(view["properties"][metadata_file.METADATA_LOCATION].removeprefix("file://"))
        raw = json.loads(file.read_text(encoding="utf-8"))
        metadata_file.check(raw)
        example("metadata-file.json", _readable(project, raw))
        assert ("mart", "revenue_daily__storage") not in project.catalog.list_tables("mart")
        return
    table = project.table("mart.revenue_daily__storage")
    summary = table.current_snapshot().summary  # type: ignore[union-attr]
    properties = _ordered({k: v for k, v in table.properties.items() if k.startswith(("iceberg.", "mvbuild."))}, summary["refresh-state"])
    example(
        "table-properties.json",
        _readable(project, {"view": {"properties": view["properties"]}, "storage table": {"properties": properties}}),
    )
    example("refresh-state.json", _readable(project, json.loads(summary["refresh-state"])))


@pytest.fixture
def example(request: pytest.FixtureRequest) -> Callable[[str, Any], None]:
    def check(name: str, content: Any) -> None:
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        file = EXAMPLES / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8"), f"{file} is not what mvbuild writes; pytest --update-golden writes it"

    return check


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SNAPSHOT = re.compile(r"(?<![\da-f])\d{15,19}(?![\da-f])")
_TIME = re.compile(r"(?<!\d)1[789]\d{11}(?!\d)")
_STARTED = re.compile(r'refresh-start-timestamp-ms[\\]*": ?[\\]*"?(\d{13})')
_MARK = re.compile(r"(?<=mvbuild.proven-query\": \")[0-9a-f]{64}|(?<= UTC )[0-9a-f]{12}(?=\")")
"""Hashes that versions of libraries are part of."""
_SIZES = ("total-files-size", "added-files-size", "removed-files-size")
_OF_THE_ENGINE = ("app-id", "spark.app.id", "engine-version", "iceberg-version", "app-name", "engine-name")


def _ordered(properties: dict[str, str], state: str) -> dict[str, str]:
    """Spark writes properties in any order: by name here, and those of tables and views in the order in which they are read."""
    uuids = {s["uuid"]: number for number, s in enumerate(json.loads(state)["source-states"])}
    return dict(sorted(properties.items(), key=lambda item: (_UUID.sub("", item[0]), uuids.get(item[0][-36:], 0))))


def _readable(project: Project, content: Any) -> Any:
    """Uuids, snapshot ids and times numbered in the order in which they are met; paths below the warehouse; no versions and sizes."""
    text = json.dumps(_trimmed(content)).replace(str(project.root / ".mvbuild"), "")
    text = _numbered(_UUID, text, lambda n: f"00000000-0000-0000-0000-{n:012d}")
    text = _numbered(_SNAPSHOT, text, lambda n: f"{1_000_000_000_000_000_000 + n}")
    text = _MARK.sub(lambda m: "0123456789abcdef"[: len(m[0]) % 16] or "0123456789abcdef" * 4, text)
    # Which times fall into one millisecond differs from run to run: those of the second refresh are a minute after all others.
    second = max((int(ms) for ms in _STARTED.findall(text)), default=0)
    return json.loads(_TIME.sub(lambda m: f"{1_800_000_000_000 + 60_000 * (int(m[0]) >= second)}", text))


def _numbered(pattern: re.Pattern[str], text: str, name: Callable[[int], str]) -> str:
    found = dict.fromkeys(m[0] for m in pattern.finditer(text))
    names = {value: name(number) for number, value in enumerate(found, 1)}
    return pattern.sub(lambda m: names[m[0]], text)


def _trimmed(value: Any) -> Any:
    if isinstance(value, dict):
        value = _ordered(value, value["refresh-state"]) if "refresh-state" in value else value
        return {k: "1024" if k in _SIZES else _trimmed(v) for k, v in value.items() if k not in _OF_THE_ENGINE or v == "mvbuild"}
    return [_trimmed(v) for v in value] if isinstance(value, list) else value
