"""The idioms of real projects as MVs over small Iceberg tables, under changes -> docs/idioms.md: how each is refreshed, and whether it is right.

    .venv/bin/python tests/benchmarks/idioms.py --report docs/idioms.md [--only pivot rollup]

Each idiom is built, then refreshed after inserts, updates, deletes, and on a later day. Those that are refreshed in full run again with
`auxiliary_views: always`. After every run each MV is compared with its query in plain Spark, as bags. Exit code 1 if any differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "compiler")]

from idiom_queries import CHANGES, IDIOMS, NAMESPACE, TABLES, Idiom  # noqa: E402
from warm_spark import warm_spark  # noqa: E402

from mvbuild.api import sessions  # noqa: E402
from mvbuild.refresh.result import NodeResult  # noqa: E402
from spark import quick  # noqa: E402
from spark.projects import Project, messages, new_project, of  # noqa: E402
from spark.refresh_histories import as_if_large  # noqa: E402

FIRST = date(2026, 3, 2)
CLOCK = "clock moved"
KINDS = (*CHANGES, CLOCK)
COMPLETE = ("full", "full-diff")
PROPERTIES = "TBLPROPERTIES ('write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read')"


@dataclass(frozen=True)
class Refreshed:
    strategy: str
    reason: str = ""

    @property
    def is_complete(self) -> bool:
        return self.strategy in COMPLETE

    @property
    def text(self) -> str:
        return f"{self.strategy}: `{self.reason}`" if self.is_complete else self.strategy


@dataclass
class Found:
    """`cells`: (idiom, kind of change) -> what the refresh was."""

    cells: dict[tuple[str, str], Refreshed] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def _refreshed(result: NodeResult, auxiliary: bool) -> Refreshed:
    strategy = str(result.details.get("strategy") or result.status)
    views = result.details.get("auxiliary_views") or () if auxiliary else ()
    complete = [one for one in views if one["strategy"] in COMPLETE]
    if complete:
        return Refreshed("full", str(complete[0]["reason"]))
    # A small query over auxiliary views that follow their changes is computed completely.
    return Refreshed("aux" if views else strategy, str(result.details.get("reason") or ""))


def _on_day(sql: str, day: date) -> str:
    return sql.replace("current_date", f"DATE '{day}'")


def _compare(project: Project, idioms: Sequence[Idiom], day: date, when: str, found: Found) -> None:
    project.sql(f"USE {NAMESPACE}")
    for idiom in idioms:
        stored, wanted = project.bag(f"SELECT * FROM lake.mart.{idiom.name}__storage"), project.bag(_on_day(idiom.sql, day))
        if stored != wanted:
            found.wrong.append(f"{idiom.name} after {when}: too many {stored - wanted}, missing {wanted - stored}")


def _project(root: Path, spark: Any, idioms: Sequence[Idiom], auxiliary: bool) -> Project:
    config = f"models: {{+refresh_policy: incremental, +auxiliary_views: {'always' if auxiliary else 'never'}, +namespace: mart}}\n"
    sources = "sources:\n  - {name: raw, tables: [" + ", ".join(f"{{name: {name}}}" for name in TABLES) + "]}\n"
    files = {"mvbuild.yml": f"name: idioms\n{config}", "models/sources.yml": sources}
    for idiom in idioms:
        files[f"models/{idiom.name}.sql"] = _with_sources(idiom.sql) + "\n"
    project = new_project(root, files, spark)
    for key, value in quick.QUERIES.items():
        project.spark.conf.set(key, value)
    project.sql(f"CREATE NAMESPACE {NAMESPACE}")
    for name, (columns, rows) in TABLES.items():
        project.sql(f"CREATE TABLE {NAMESPACE}.{name} ({columns}) USING iceberg {PROPERTIES}")
        project.sql(f"INSERT INTO {NAMESPACE}.{name} {rows.format(day=FIRST)}")
    return project


def _with_sources(sql: str) -> str:
    for name in TABLES:
        for before in ("FROM", "JOIN"):
            sql = sql.replace(f"{before} {name}", f"{before} raw.{name}")
    return sql


def _run(project: Project, idioms: Sequence[Idiom], kind: str, day: date, auxiliary: bool, found: Found) -> None:
    sessions.SystemClock.now_ms = lambda *_: _noon(day)  # type: ignore[method-assign]
    result = project.run(threads=2)
    if not result.ok:
        raise SystemExit("\n".join(messages(result)))
    _compare(project, idioms, day, kind, found)
    for idiom in idioms:
        if kind != CLOCK or idiom.reads_the_day:
            found.cells[idiom.name, kind] = _refreshed(of(result, idiom.name), auxiliary)
    print(f"{'auxiliary views: ' if auxiliary else ''}{kind}: {result.seconds:.0f} s, wrong so far: {len(found.wrong)}", flush=True)


def _noon(day: date) -> int:
    return (day.toordinal() - date(1970, 1, 1).toordinal()) * 86_400_000 + 43_200_000


def play(root: Path, spark: Any, idioms: Sequence[Idiom], *, auxiliary: bool) -> Found:
    """The history of all idioms in one project."""
    found = Found()
    project = _project(root, spark, idioms, auxiliary)
    _run(project, idioms, "first", FIRST, auxiliary, found)
    for kind, statements in CHANGES.items():
        project.sql(f"USE {NAMESPACE}")
        for statement in statements:
            project.sql(statement.format(day=FIRST))
        _run(project, idioms, kind, FIRST, auxiliary, found)
    _run(project, idioms, CLOCK, FIRST + timedelta(days=1), auxiliary, found)
    project.catalog.close()
    return found


# --- the page ---------------------------------------------------------------------------------------------------------------------


def _cell(idiom: Idiom, kind: str, plain: Found, always: Found) -> str:
    one, other = plain.cells.get((idiom.name, kind)), always.cells.get((idiom.name, kind))
    if one is None:
        return ""
    if one.is_complete and other is not None and not other.is_complete:
        return f"full: `{one.reason}`; **{other.text}**"
    return one.text


def page(idioms: Sequence[Idiom], plain: Found, always: Found) -> str:
    names = [idiom.name for idiom in idioms]
    full = {name for name in names if any(plain.cells[name, kind].is_complete for kind in KINDS if (name, kind) in plain.cells)}
    left = {name for name in full if any(always.cells[name, kind].is_complete for kind in KINDS if (name, kind) in always.cells)}
    wrong = [*plain.wrong, *always.wrong]
    lines = [
        "# Idioms of real projects",
        "",
        "How mvbuild refreshes the queries that projects are made of. This page is generated by running them: each query is an MV over small",
        "Iceberg tables (merge-on-read), refreshed with `refresh_policy: incremental` after rows were inserted into, updated in and deleted from",
        "**every** table, and on a later day. After every refresh the MV had the rows of its query in plain Spark.",
        "",
        "A cell has the strategy ([incremental.md](incremental.md#strategies)) or `full` with its [reason](incremental-table.md#reasons). **aux**:",
        "the MV is refreshed from [auxiliary views](incremental.md#auxiliary-views) that follow the changes (`auxiliary_views: always`). An empty",
        "cell: the query does not read the day. Small tables are treated as large ones, so that the choice by cost does not hide a strategy.",
        "",
        f"- Idioms: {len(names)}",
        f"- Never refreshed in full: {len(names) - len(full)}; with auxiliary views {len(names) - len(left)}",
        f"- Refreshes that were compared: {len(plain.cells) + len(always.cells)}, of which differed: {len(wrong)}",
        "",
        f"| idiom | {' | '.join(KINDS)} |",
        f"|---|{'---|' * len(KINDS)}",
    ]
    lines += [f"| {idiom.what} | {' | '.join(_cell(idiom, kind, plain, always) for kind in KINDS)} |" for idiom in idioms]
    lines += ["", "## The queries", ""]
    for idiom in idioms:
        lines += [f"{idiom.what[0].upper()}{idiom.what[1:]}:", "", "```sql", idiom.sql, "```", ""]
    return "\n".join([*lines[:-1], ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="names of idioms")
    parser.add_argument("--report", default="", help="a Markdown file for the page")
    options = parser.parse_args()
    idioms = [idiom for idiom in IDIOMS if not options.only or idiom.name in options.only]
    with (
        tempfile.TemporaryDirectory(prefix="mvbuild-idioms-") as directory,
        warm_spark(Path(directory) / "spark", small=True) as spark,
        as_if_large(),
    ):
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        plain = play(Path(directory) / "plain", spark, idioms, auxiliary=False)
        again = [idiom for idiom in idioms if any(found.is_complete for (name, _), found in plain.cells.items() if name == idiom.name)]
        always = play(Path(directory) / "always", spark, again, auxiliary=True) if again else Found()
    text = page(idioms, plain, always)
    print(text)
    if options.report:
        Path(options.report).write_text(text, encoding="utf-8")
    print("\n".join([*plain.wrong, *always.wrong]) or "no difference", Counter(found.text for found in plain.cells.values()))
    return 1 if plain.wrong or always.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
