"""The realistic queries as MVs over small random tables, under random changes -> how each is refreshed, and whether it is right.

    .venv/bin/python tests/benchmarks/realistic_rounds.py --rounds 4 [--seed 7] [--auxiliary-views always] [--only last_day in_pairs]

In each round rows of some tables are added, changed and removed; all MVs are refreshed, small tables as if they were large, and compared
with their queries in plain Spark, as bags. Queries whose rows depend on an order with ties have no single right result, and are left out.
Exit code 1 if any differs.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter, defaultdict
from datetime import date, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "compiler")]

from refreshed import COMPLETE, differs, how  # noqa: E402
from warm_spark import warm_spark  # noqa: E402

from mvbuild.incremental.reasons import Refused  # noqa: E402
from mvbuild.incremental.row_order import nondeterministic_part  # noqa: E402
from mvbuild.parse.clock_reads import without_clock  # noqa: E402
from spark import quick  # noqa: E402
from spark.projects import Project, new_project  # noqa: E402
from spark.refresh_histories import as_if_large  # noqa: E402
from spark.test_realistic_queries import sql_type  # noqa: E402
from unit.incremental import newest_rows, operator_queries  # noqa: E402
from unit.incremental.realistic import QUERIES, REQUIRED, TABLES, Realistic  # noqa: E402

FIRST = date(2026, 1, 1)
ROWS = 60
WORDS = {
    "status": ("open", "paid", "cancelled", "new", "x"),
    "channel": ("web", "shop", "app", "app%"),
    "country": ("NL", "DE", "US"),
    "segment": ("a", "b", "web"),
    "kind": ("view", "click", "buy"),
    "page": ("web", "a", "home"),
    "category": ("food", "toys"),
}
PROFILE = ('{"age": 30, "city": "Ghent"}', '{"age": 41}', "not json")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=(), help="these queries, by name")
    parser.add_argument("--auxiliary-views", choices=("auto", "never", "always"), default="auto")
    parser.add_argument("--mode", choices=("merge-on-read", "copy-on-write"), default="merge-on-read")
    options = parser.parse_args()
    chosen = [q for q in (*QUERIES, *newest_rows.QUERIES, *operator_queries.QUERIES) if _has_one_result(q)]
    if options.only:
        chosen = [q for q in chosen if q.name in options.only]
    with tempfile.TemporaryDirectory(prefix="mvbuild-realistic-") as directory, warm_spark(Path(directory) / "spark", small=True) as spark:
        shop = Shop(Path(directory), spark, chosen, options)
        wrong = shop.play()
        shop.project.catalog.close()
    return 1 if wrong else 0


def _has_one_result(query: Realistic) -> bool:
    if without_clock(query.sql) != query.sql:
        return False
    try:
        return nondeterministic_part(query.shape.root, query.shape.types) is None
    except Refused:
        return False


class Shop:
    """A project of the queries over the tables of the shop."""

    def __init__(self, root: Path, spark: Any, queries: list[Realistic], options: argparse.Namespace) -> None:
        self.random, self.options = random.Random(options.seed), options
        self.queries = {q.name: q.sql.format(**{name: f"lake.main.{name}" for name in TABLES}) for q in queries}
        config = f"name: shop\nmodels: {{+refresh_policy: incremental, +auxiliary_views: {options.auxiliary_views}}}\n"
        files = {"mvbuild.yml": config, **{f"models/{name}.sql": f"{sql}\n" for name, sql in self.queries.items()}}
        self.project: Project = new_project(root / "project", files, spark)
        for key, value in quick.QUERIES.items():
            self.project.spark.conf.set(key, value)
        self.ids = dict.fromkeys(TABLES, 0)
        self.later: dict[str, str] = {}
        kinds = ", ".join(f"'write.{kind}.mode' = '{options.mode}'" for kind in ("delete", "update", "merge"))
        for name, columns in TABLES.items():
            # The last column comes later: files without it remain, and changes leave some of them without a row.
            self.later[name] = list(columns)[-1]
            listed = ", ".join(
                f"{column} {sql_type(type_)}{' NOT NULL' if column == REQUIRED[name] else ''}"
                for column, type_ in columns.items()
                if column != self.later[name]
            )
            self.project.sql(f"CREATE TABLE lake.main.{name} ({listed}) USING iceberg TBLPROPERTIES ({kinds})")
            for rows in (ROWS // 2, 1, 2):
                self.insert(name, rows)
            last = self.later.pop(name)
            self.project.sql(f"ALTER TABLE lake.main.{name} ADD COLUMN {last} {sql_type(columns[last])}")
            self.insert(name, ROWS // 2)

    def play(self) -> int:
        seen: dict[str, Counter[str]] = defaultdict(Counter)
        first = self.project.run(threads=2)
        wrong = self.compared("first", {r.node.rpartition(".")[2]: r for r in first.results})
        for number in range(self.options.rounds):
            for name in self.random.sample(sorted(TABLES), self.random.choice((1, 2, 4))):
                self.change(name)
            began = perf_counter()
            with as_if_large():
                result = self.project.run(threads=2)
            results = {r.node.rpartition(".")[2]: r for r in result.results}
            for name, one in results.items():
                seen[name][how(one) if one.status != "error" else f"error: {one.message}"] += 1
            wrong += self.compared(f"round {number}, {perf_counter() - began:.0f} s", results)
        for name, ways in sorted(seen.items()):
            if any(way.startswith((*COMPLETE, "error")) for way in ways):
                print(f"  {name}: {', '.join(f'{way} x {n}' for way, n in ways.items())}")
        complete = sum(any(way.startswith((*COMPLETE, "error")) for way in ways) for ways in seen.values())
        print(f"{len(self.queries)} queries, {complete} were ever refreshed in full, {wrong} differences")
        return wrong

    def compared(self, when: str, results: dict[str, Any]) -> int:
        built = [name for name in self.queries if results[name].status != "error"]
        wrong = [name for name in built if differs(self.project, name, self.queries[name])]
        errors = [f"{name} ({results[name].message[:120]})" for name in self.queries if name not in built]
        print(f"{when}: wrong: {', '.join(wrong) or 'none'}; errors: {', '.join(errors) or 'none'}", flush=True)
        return len(wrong)

    # --- changes ----------------------------------------------------------------------------------------------------------------------

    def insert(self, table: str, rows: int) -> None:
        made = ", ".join(f"({', '.join(self.row(table))})" for _ in range(rows))
        self.project.sql(f"INSERT INTO lake.main.{table} VALUES {made}")

    def change(self, table: str) -> None:
        key, part = REQUIRED[table], self.random.randrange(9)
        for kind in self.random.sample(("insert", "update", "delete", "empty a file"), self.random.choice((1, 1, 2, 4))):
            if kind == "empty a file":
                self.empty_file(table)
            elif kind == "insert":
                self.insert(table, self.random.choice((1, 5)))
            elif kind == "delete":
                self.project.sql(f"DELETE FROM lake.main.{table} WHERE {key} % 9 = {part}")
            else:
                columns = self.random.sample([c for c in TABLES[table] if c != key], 3)
                changes = ", ".join(f"{column} = {self.value(column, TABLES[table][column])}" for column in columns)
                self.project.sql(f"UPDATE lake.main.{table} SET {changes} WHERE {key} % 9 = {(part + 1) % 9}")

    def empty_file(self, table: str) -> None:
        """Remove every row of one file, which stays in the table with deletes that cover it."""
        key = REQUIRED[table]
        keys: dict[str, list[str]] = defaultdict(list)
        for file, value in self.project.sql(f"SELECT _file, {key} FROM lake.main.{table}"):
            keys[file].append(str(value))
        small = sorted((found for found in keys.values() if len(found) < 9), key=lambda found: int(found[0]))
        if small:
            self.project.sql(f"DELETE FROM lake.main.{table} WHERE {key} IN ({', '.join(self.random.choice(small))})")

    def row(self, table: str) -> list[str]:
        self.ids[table] += 1
        columns = [(c, type_) for c, type_ in TABLES[table].items() if c != self.later.get(table)]
        return [str(self.ids[table]) if c == REQUIRED[table] else self.value(c, type_) for c, type_ in columns]

    def value(self, column: str, type_: Any) -> str:
        """A literal, NULL for one in eight."""
        pick = self.random
        if pick.random() < 1 / 8:
            return f"CAST(NULL AS {sql_type(type_)})"
        if isinstance(type_, dict):
            if type_["element"] == "string":
                return f"array({', '.join(repr(pick.choice(('a', 'b', 'new'))) for _ in range(pick.randint(1, 3)))})"
            line = "named_struct('product_id', CAST({} AS BIGINT), 'quantity', {})"
            return f"array({', '.join(line.format(pick.randint(1, 9), pick.randint(0, 4)) for _ in range(pick.randint(1, 3)))})"
        if type_ == "string":
            words = PROFILE if column in ("profile", "payload") else WORDS.get(column, ("ann", "bob", "ann@x.be", "Eve"))
            return f"'{pick.choice(words)}'"
        if type_ == "date":
            return f"DATE '{FIRST + timedelta(days=pick.randint(0, 120))}'"
        if type_ == "timestamptz":
            return f"TIMESTAMP '{datetime(2026, 1, 1) + timedelta(minutes=17 * pick.randint(0, 9000))}'"
        if type_ == "boolean":
            return pick.choice(("true", "false"))
        if type_.startswith("decimal"):
            return f"CAST({pick.choice((0, 1, 2.5, 10, 99.99, 150))} AS {sql_type(type_)})"
        return f"CAST({pick.randint(0, 4) if type_ == 'int' else pick.randint(1, 30)} AS {sql_type(type_)})"


if __name__ == "__main__":
    sys.exit(main())
