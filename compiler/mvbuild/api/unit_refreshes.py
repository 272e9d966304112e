"""UnitTest -> the same test as refreshes in a project of its own: rows are added, then removed, and each result is compared."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mvbuild.adapters import session_beside, start_engine
from mvbuild.api.compilation import compile
from mvbuild.api.frames import read
from mvbuild.api.runs import run
from mvbuild.diagnostics import ProjectError, error
from mvbuild.graph.model import Graph, NodeId
from mvbuild.lineage.types import of_iceberg, text
from mvbuild.ports.engine import Engine
from mvbuild.project.unit_tests import RowsAsWritten, UnitTest
from mvbuild.unit_tests.difference import Row, difference
from mvbuild.unit_tests.query import ColumnsOf, TestQuery, test_query
from mvbuild.unit_tests.run import FEW_ROWS, Refresh
from mvbuild.unit_tests.values import compared, rows_sql

_PROJECT = """name: unit_test
models: {{+refresh_policy: incremental_strict, +when_stale: fail, +storage: {{format: metadata-file}}}}
targets:
  dev:
    catalog: {{name: {catalog}, type: hadoop, warehouse: {warehouse}}}
"""


def as_refreshes(engine: Callable[[], Engine], graph: Graph, columns: ColumnsOf, folder: Path) -> Refresh:
    """Each test gets a catalog of its own in the folder, and a session of the same Spark."""
    numbers = iter(range(1_000_000))

    def refreshed(test: UnitTest, query: TestQuery) -> str:
        root = folder / str(next(numbers))
        # Sessions of one Spark share what it was started with: the name must not be that of another catalog.
        catalog = f"unit_test_{secrets.token_hex(8)}"
        names = {id_: f"{catalog}.given.input_{number}" for number, id_ in enumerate(query.inputs)}
        sql = test_query(graph, test, columns, names=names).sql
        (root / "models").mkdir(parents=True)
        (root / "mvbuild.yml").write_text(_PROJECT.format(catalog=catalog, warehouse=json.dumps(str(root / "warehouse"))), encoding="utf-8")
        (root / "warehouse").mkdir()
        (root / "models" / "tested.sql").write_text(f"{{% raw %}}{sql}{{% endraw %}}\n", encoding="utf-8")
        return _Refreshes(test, query, columns, names, sql, root, catalog, engine()).difference()

    return refreshed


class _Refreshes:
    """The refreshes of one test."""

    def __init__(
        self,
        test: UnitTest,
        query: TestQuery,
        columns: ColumnsOf,
        names: dict[NodeId, str],
        sql: str,
        root: Path,
        catalog: str,
        engine: Engine,
    ) -> None:
        self._test, self._query, self._columns, self._names, self._sql, self._root = test, query, columns, names, sql, root
        self._catalog = catalog
        self._spark = session_beside(engine)
        target = compile(root).project.target
        self._engine = start_engine(target, spark=self._spark, log_file=root / "spark.log", env=os.environ)
        for key, value in FEW_ROWS.items():
            self._engine.call(f"SET {key}={value}")

    def difference(self) -> str:
        self._engine.call(f"CREATE NAMESPACE IF NOT EXISTS {self._catalog}.given")
        for id_, name in self._names.items():
            self._engine.call(f"CREATE TABLE {name} USING iceberg AS SELECT * FROM {self._rows(id_, slice(0, None, 2))}")
        self._run()
        for id_, name in self._names.items():
            rows = self._query.rows[id_].records
            # The first row once more: the next change removes it.
            self._engine.call(f"INSERT INTO {name} SELECT * FROM {self._rows(id_, slice(1, None, 2))}")
            if rows:
                self._engine.call(f"INSERT INTO {name} SELECT * FROM {self._rows(id_, slice(0, 1))}")
        self._run()
        found = self._compared("after rows were added")
        if found:
            return found
        for id_, name in self._names.items():
            self._engine.call(f"INSERT OVERWRITE {name} SELECT * FROM {self._rows(id_, slice(None))}")
        self._run()
        return self._compared("after rows were removed")

    def _rows(self, id_: NodeId, part: slice) -> str:
        rows: RowsAsWritten = self._query.rows[id_]
        some = replace(rows, records=rows.records[part], places=rows.places[part])
        return rows_sql(some, self._columns[id_].types if id_ in self._columns else {})

    def _run(self) -> None:
        result = run(self._root, spark=self._spark)
        wrong = [d for one in result.results for d in one.diagnostics if d.severity == "error"]
        if not result.ok:
            cause = wrong[0].message if wrong else "the refresh failed"
            name = self._query.node.model.name
            message = f"The unit test '{self._test.name}' cannot run as a refresh: {cause.replace('tested', name)}"
            help = "Remove `incremental: true`, or see docs/incremental.md for queries that are refreshed incrementally."
            raise ProjectError([error("bad-unit-test", message, self._test.span, help=help)])

    def _compared(self, when: str) -> str:
        fields = self._engine.prepare(self._sql).schema["fields"]
        columns = [(str(field["name"]), text(of_iceberg(field["type"])) or "string") for field in fields]
        shown, stored = compared(columns), "rows_of_unit_test"
        read(self._spark, "tested", project=self._root).createOrReplaceTempView(stored)
        sides = f"SELECT 0 AS side, {shown} FROM {stored} UNION ALL SELECT 1 AS side, {shown} FROM ({self._sql}\n) AS query"
        rows: tuple[list[Row], list[Row]] = ([], [])
        for side, *values in self._engine.rows(sides, 100_000).rows:
            rows[side].append(tuple(values))
        found = difference([name for name, _ in columns], *rows)
        return f"{when[0].upper()}{when[1:]}, the rows of the MV differ from those of its query.\n{found}" if found else ""
