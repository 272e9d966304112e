"""-> the 99 queries of TPC-DS in Spark's SQL, taken from the wheel of DuckDB's extension that ships them, once for each machine.

They are TPC's text and not ours, so they are not kept here. What Spark needs otherwise is changed by rule: names in double quotes, outputs
without a name, and divisions that a tiny scale makes divisions by zero. Of 14, 23, 24 and 39, which have two statements, the first.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import venv
from pathlib import Path

import sqlglot
from sqlglot import exp

CACHE = Path.home() / ".cache" / "mvbuild" / "tpcds"
WHEELS = ("duckdb==1.5.5", "duckdb-extensions==1.5.5", "duckdb-extension-tpcds==1.5.5")
READ = """
import duckdb, duckdb_extensions, json
duckdb_extensions.import_extension("tpcds")
connection = duckdb.connect()
connection.execute("LOAD tpcds")
print(json.dumps(connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()))
"""


def queries() -> dict[str, str]:
    """q01 ... q99 -> SQL."""
    kept = CACHE / "queries.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(_shipped()), encoding="utf-8")
    return {f"q{number:02}": in_spark(text) for number, text in json.loads(kept.read_text(encoding="utf-8"))}


def _shipped() -> list[tuple[int, str]]:
    """In an environment of its own: the wheels ask for another DuckDB than ours."""
    home = CACHE / "venv"
    venv.create(home, with_pip=True, clear=True)
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", *WHEELS], check=True)
    found = subprocess.run([python, "-c", READ], check=True, capture_output=True, text=True)
    return json.loads(found.stdout)


def in_spark(text: str) -> str:
    sql = re.sub(r"--[^\n]*", "", text).strip().rstrip(";")
    sql = re.sub(r'"([^"]+)"', lambda match: "`" + re.sub(r"\W+", "_", match[1]).strip("_").lower() + "`", sql)
    sql = re.sub(r"/\s*(sum\(sum\(\w+\)\) OVER \(PARTITION BY \w+\))", r"/nullif(\1, 0)", sql, flags=re.IGNORECASE)
    return _named(sql)


def _named(sql: str) -> str:
    """With a name for each output that has none, or has that of another."""
    tree = sqlglot.parse_one(sql, dialect="spark")
    select = tree
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    assert isinstance(select, exp.Select)
    names = [e.alias_or_name for e in select.expressions]
    if all(names) and len(set(names)) == len(names):
        return sql
    for at, one in enumerate(select.expressions):
        if not names[at] or names[at] in names[:at]:
            inner = one.unnest()
            name = inner.name if isinstance(inner, exp.Column) and inner.name not in names else f"column_{at + 1}"
            one.replace(exp.alias_(one.unalias().copy(), name))
    return tree.sql("spark")


if __name__ == "__main__":
    print(len(queries()))
