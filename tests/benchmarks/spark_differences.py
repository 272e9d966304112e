"""the installed Spark -> which SQL it accepts, for the table in docs/spark-versions.md.

python tests/benchmarks/spark_differences.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from warm_spark import warm_spark  # noqa: E402

STATEMENTS = {
    "`SELECT * EXCEPT (column)`": "SELECT * EXCEPT (v) FROM VALUES (1, 2) AS t(k, v)",
    "`GROUP BY ALL`": "SELECT k, sum(v) FROM VALUES (1, 2) AS t(k, v) GROUP BY ALL",
    "`IDENTIFIER('name')`": "SELECT IDENTIFIER('k') FROM VALUES (1, 2) AS t(k, v)",
    "`WITH RECURSIVE`": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
    "pipes: `FROM t |> WHERE k > 0`": "FROM VALUES (1, 2) AS t(k, v) |> WHERE k > 0",
    "variables: `DECLARE VARIABLE`": "DECLARE OR REPLACE VARIABLE mvbuild_x INT DEFAULT 1",
    "type VARIANT": "SELECT parse_json('{}')",
    "collations": "SELECT 'a' COLLATE UTF8_LCASE = 'A'",
    "type TIME": "SELECT TIME'12:00:00'",
    "`listagg`": "SELECT listagg(k) FROM VALUES ('a') AS t(k)",
    "`INSERT INTO t (k)`: other columns are NULL": "INSERT INTO other.main.difference (k) VALUES (1)",
    "ANSI is on by default": "SELECT CASE WHEN CAST('x' AS INT) IS NULL THEN raise_error('off') END",
}
ERROR_MEANS_YES = ("ANSI is on by default",)
"""With ANSI, the cast fails by itself, and otherwise `raise_error` says so."""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="mvbuild-differences-") as directory, warm_spark(Path(directory), small=True) as spark:
        (Path(directory) / "other" / ".mvbuild").mkdir(parents=True)
        spark.sql("CREATE NAMESPACE IF NOT EXISTS other.main")
        spark.sql("CREATE OR REPLACE TABLE other.main.difference (k INT, v INT) USING iceberg")
        print(f"| | {spark.version} |")
        for what, statement in STATEMENTS.items():
            try:
                spark.sql(statement).collect()
                accepts = True
            except Exception as exc:  # noqa: BLE001  whatever it says, it does not accept it
                accepts = what in ERROR_MEANS_YES and "CAST_INVALID_INPUT" in str(exc)
            print(f"| {what} | {'yes' if accepts else 'no'} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
