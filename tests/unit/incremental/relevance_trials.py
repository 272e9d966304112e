"""Random files with statistics, random conditions -> whether metadata says that no row can meet one, and whether a row does.

The statistics are computed from the rows as writers do: bounds that are cut, counts alone, or none; partition values of several specs.
What the rows say is asked of DuckDB by the text of the condition.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from types import SimpleNamespace
from typing import Any

import duckdb
import sqlglot
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.typedef import Record
from pyiceberg.utils.truncate import truncate_upper_bound_text_string

from mvbuild.adapters.iceberg.change_tables import PartFiles
from mvbuild.adapters.iceberg.file_matching import may_match
from mvbuild.adapters.iceberg.manifests import FileEntry, Header
from mvbuild.incremental.building import LeafColumns
from mvbuild.incremental.from_clause import MARKER
from mvbuild.incremental.scan_conditions import relevant
from mvbuild.incremental.shape import shape_of
from mvbuild.ports.changes import Predicate

COLUMNS = {
    "i": "int",
    "l": "long",
    "p": "long",
    "m": "decimal(10, 2)",
    "big": "decimal(38, 10)",
    "w": "decimal(6, 0)",
    "s": "string",
    "b": "boolean",
    "d": "date",
    "t": "timestamp",
    "f": "double",
}
PROMOTED = "p"
"""Written as int, long today."""
EARLY = date(1970, 1, 1)
TRANSFORMS = {
    "int": ("identity", "bucket[4]", "truncate[10]"),
    "long": ("identity", "bucket[4]", "truncate[7]"),
    "decimal(10, 2)": ("identity", "bucket[4]", "truncate[100]"),
    "decimal(38, 10)": ("identity", "bucket[4]", "truncate[1000]"),
    "decimal(6, 0)": ("identity", "truncate[5]"),
    "string": ("identity", "bucket[4]", "truncate[1]", "truncate[3]", "truncate[20]"),
    "boolean": ("identity",),
    "date": ("identity", "year", "month", "day", "bucket[4]", "void"),
    "timestamp": ("year", "month", "day", "hour", "identity"),
}
WORDS = ("", "a", "ab", "abc", "abcdefghijklmnop", "abcdefghijklmnopq", "abcdefghijklmnoq", "b", "Ab", "é", "éa", "zebra", "\U0010ffff" * 17,
         "ß", "日本語日本語日本語日本語日本語日本語", "日本", "😀", "😀😀", "~", "abcdefghijklmno\U0010ffff1", "2024-01-01", "5")  # fmt: skip
SCHEMA = Schema.model_validate(
    {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 10 + n, "name": c, "type": t, "required": False} for n, (c, t) in enumerate(COLUMNS.items())],
    }
)
TYPES = {f.name: f.field_type for f in SCHEMA.fields}
IDS = {f.name: f.field_id for f in SCHEMA.fields}


def value(random: Random, type_: str) -> Any:
    """Few values, so that equalities hit; now and then an extreme one."""
    rare = random.random() < 0.03
    if type_ == "int":
        return random.choice((-(2**31), 2**31 - 1)) if rare else random.randint(-30, 30)
    if type_ == "long":
        return random.choice((-(2**63), 2**63 - 1, 2**53 + 1)) if rare else random.randint(-30, 30)
    if type_.startswith("decimal"):
        scale = TYPES[next(c for c, t in COLUMNS.items() if t == type_)].scale
        unscaled = random.choice((-1, 1)) * (10 ** (32 if "38" in type_ else 6) - 1) if rare else random.randint(-3000, 3000)
        return Decimal(f"{unscaled}e-{scale}")
    if type_ == "string":
        return random.choice(WORDS)
    if type_ == "boolean":
        return random.random() < 0.5
    if type_ == "date":
        return (
            EARLY + timedelta(days=random.randint(-400, 400))
            if random.random() < 0.3
            else date(2024, 1, 1) + timedelta(days=random.randint(-60, 60))
        )
    if type_ == "timestamp":
        start = datetime(1970, 1, 1) if random.random() < 0.3 else datetime(2024, 1, 1)
        return start + timedelta(seconds=random.randint(-5_000_000, 5_000_000), microseconds=random.choice((0, 0, 999_999)))
    return float(random.choice((0, 1, -1, float("nan"))))


# --- files ---------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    rows: list[dict[str, Any]]
    entry: FileEntry


def file(random: Random) -> File:
    """A file of one partition, its values near each other in some columns."""
    height = random.choice((0, 1, 1, 2, 3, 5))
    only = {c: value(random, t) for c, t in COLUMNS.items() if random.random() < 0.5}
    nulls = {c: random.choice((0.0, 0.0, 0.3, 1.0)) for c in COLUMNS}
    missing = {c for c in COLUMNS if random.random() < 0.06}
    """Added to the table later."""
    spec = spec_of(random)
    first: list[Any] | None = None
    rows = []
    for _ in range(height * 4):
        row = {
            c: None if c in missing or random.random() < nulls[c] else only[c] if c in only else value(random, t)
            for c, t in COLUMNS.items()
        }
        if row[PROMOTED] is not None and abs(row[PROMOTED]) >= 2**31:
            row[PROMOTED] = 7
        found = [transformed(one, row) for one in spec]
        first = found if first is None else first
        if found == first:
            rows.append(row)
        if len(rows) == height:
            break
    if first is None:
        first = [None for _ in spec]
    if random.random() < 0.3:
        first = [old_release(one, part) for one, part in zip(spec, first, strict=True)]
    data = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path="f",
        file_format=FileFormat.PARQUET,
        partition=Record(*first),
        record_count=len(rows),
        file_size_in_bytes=1,
        **statistics(random, rows, missing),
    )
    meta = {} if random.random() < 0.03 else {"partition-spec": json.dumps(spec)}
    return File(rows, FileEntry(ManifestEntry.from_args(data_file=data), b"", Header(meta, SCHEMA, 0)))


def spec_of(random: Random) -> list[dict[str, Any]]:
    """Names as of before a rename, or whatever they were."""
    columns = random.sample([c for c in COLUMNS if COLUMNS[c] in TRANSFORMS], random.choice((0, 0, 1, 1, 2, 3)))
    chosen = [(c, random.choice(TRANSFORMS[COLUMNS[c]])) for c in columns]
    return [{"source-id": IDS[c], "field-id": 1000 + n, "name": f"old.{c}", "transform": t} for n, (c, t) in enumerate(chosen)]


def transformed(part: dict[str, Any], row: dict[str, Any]) -> Any:
    column = next(c for c, id_ in IDS.items() if id_ == part["source-id"])
    return parse_transform(part["transform"]).transform(TYPES[column])(internal(row[column]))


def internal(found: Any) -> Any:
    if isinstance(found, datetime):
        return round((found - datetime(1970, 1, 1)) / timedelta(microseconds=1))
    return (found - EARLY).days if isinstance(found, date) else found


def old_release(part: dict[str, Any], found: Any) -> Any:
    """Times before 1970 were once cut toward zero."""
    return found + 1 if part["transform"] in ("year", "month", "day", "hour") and found is not None and found < 0 else found


def statistics(random: Random, rows: list[dict[str, Any]], missing: set[str]) -> dict[str, Any]:
    counts, nulls, nans, lower, upper = {}, {}, {}, {}, {}
    for column, type_ in COLUMNS.items():
        mode = random.choices(("bounds", "counts", "none", "only bounds", "wide"), (12, 1, 1, 1, 1))[0]
        if column in missing or mode == "none":
            continue
        id_, present = IDS[column], [row[column] for row in rows if row[column] is not None]
        if mode != "only bounds":
            counts[id_], nulls[id_] = len(rows), len(rows) - len(present)
        if type_ == "double":
            nans[id_] = sum(v != v for v in present)
        present = [v for v in present if v == v]
        if mode == "counts" or not present:
            continue
        if mode == "wide" and type_ in ("int", "long"):
            present += [min(present) - 1 if min(present) > -30 else min(present), max(present) + 1 if max(present) < 30 else max(present)]
        low, high = min(present), max(present)
        if type_ == "string":
            high_text = truncate_upper_bound_text_string(high, 16)
            lower[id_] = low[:16].encode()
            if high_text is not None:
                upper[id_] = high_text.encode()
            continue
        size = SCHEMA.find_type("i") if column == PROMOTED else TYPES[column]
        lower[id_], upper[id_] = to_bytes(size, internal(low)), to_bytes(size, internal(high))
    found = {"value_counts": counts, "null_value_counts": nulls, "nan_value_counts": nans, "lower_bounds": lower, "upper_bounds": upper}
    return found if random.random() < 0.97 else dict.fromkeys(found)


# --- conditions ----------------------------------------------------------------------------------------------------------------------


Pool = dict[str, list[Any]]
"""Type -> values that the files have: conditions about them show what is wrong at the ends of a range."""


def condition(random: Random, pool: Pool, depth: int = 2) -> str:
    pick = random.random()
    if depth and pick < 0.2:
        return f"({condition(random, pool, depth - 1)} OR {condition(random, pool, depth - 1)})"
    if depth and pick < 0.5:
        return f"({condition(random, pool, depth - 1)} AND {condition(random, pool, depth - 1)})"
    if depth and pick < 0.58:
        return f"NOT ({condition(random, pool, depth - 1)})"
    return comparison(random, pool)


def comparison(random: Random, pool: Pool) -> str:
    column, type_ = random.choice(list(COLUMNS.items()))
    pick = random.random()
    if pick < 0.08:
        return f"{column} IS {random.choice(('', 'NOT '))}NULL"
    if type_ == "boolean":
        return random.choice((column, f"NOT {column}", f"{column} = {constant(random, type_, pool)}"))
    if type_ == "string" and pick < 0.4:
        prefix = random.choice(pool.get(type_) or WORDS)[: random.choice((1, 2, 16, 17, 99))]
        negated = random.choice(("", "", "NOT "))
        return random.choice(
            (
                f"{column} {negated}LIKE '{prefix}%'",
                f"{column} {negated}LIKE '{prefix}'",
                f"{column} LIKE '_{prefix}%'",
                f"startswith({column}, '{prefix}')",
            )
        )
    if pick < 0.3:
        low, high = constant(random, type_, pool), constant(random, type_, pool)
        return f"{column} {random.choice(('', '', 'NOT '))}BETWEEN {low} AND {high}"
    if pick < 0.45:
        values = [constant(random, type_, pool) for _ in range(random.randint(1, 4))] + ["NULL"] * (random.random() < 0.1)
        return f"{column} {random.choice(('', '', 'NOT '))}IN ({', '.join(values)})"
    operator = random.choice(("=", "=", "<", "<=", ">", ">=", "<>", "<=>"))
    if random.random() < 0.05:
        others = [c for c, t in COLUMNS.items() if t == type_]
        return f"{column} {operator} {random.choice(others)}"
    sides = [column, constant(random, type_, pool)]
    if random.random() < 0.2:
        sides.reverse()
    return f"{sides[0]} {operator} {sides[1]}"


def constant(random: Random, type_: str, pool: Pool) -> str:
    found = random.choice(pool[type_]) if pool.get(type_) and random.random() < 0.7 else value(random, type_)
    if type_ in ("int", "long"):
        return (
            random.choice((f"{found}", f"{found}", f"{found}.0", f"{found}.50"))
            if abs(found) < 2**50
            else f"{found}"
            if found > 0
            else "-5"
        )
    if type_.startswith("decimal"):
        text = f"{found:f}"
        return random.choice(
            (text, text, f"{text}{'' if '.' in text else '.'}0", str(random.randint(-30, 30)), f"{random.randint(-3, 3)}.125")
        )
    if type_ == "string":
        return f"'{found}'"
    if type_ == "boolean":
        return str(found).lower()
    if type_ == "date":
        return random.choice((f"DATE '{found}'", f"CAST('{found}' AS DATE)", f"'{found}'"))
    if type_ == "timestamp":
        return random.choice((f"TIMESTAMP_NTZ '{found}'", f"DATE '{found.date()}'"))
    return f"CAST('{found}' AS DOUBLE)"


# --- trials --------------------------------------------------------------------------------------------------------------------------


@dataclass
class Counts:
    """A trial is one file and one condition."""

    trials: int = 0
    irrelevant: int = 0
    """Metadata says that no row can meet the condition, and the file has rows."""
    none_meets: int = 0
    """No row meets it, and the file has rows."""
    untranslated: int = 0
    empty_files: int = 0
    wrong: list[str] = field(default_factory=list)
    changes: int = 0
    """Changes of many files."""
    changes_irrelevant: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__})


FILES, CONDITIONS = 12, 12


def round_of_trials(seed: int, connection: duckdb.DuckDBPyConnection) -> Counts:
    """FILES files, CONDITIONS conditions, each with each."""
    random, found = Random(seed), Counts()
    files = [file(random) for _ in range(FILES)]
    pool: Pool = {}
    for one in files:
        for row in one.rows[:1]:
            for column, found_value in row.items():
                if found_value is not None:
                    pool.setdefault(COLUMNS[column], []).append(found_value)
    conditions = [condition(random, pool) for _ in range(CONDITIONS)]
    passing = met(connection, files, conditions)
    for number, text in enumerate(conditions):
        scans = conjunctions(text)
        found.untranslated += not any(scans)
        for at, one in enumerate(files):
            may = any(not scan for scan in scans) or may_match(change(random, one), scans)
            found.trials += 1
            found.empty_files += not one.rows
            found.irrelevant += bool(one.rows) and not may
            found.none_meets += bool(one.rows) and not passing[at][number]
            if passing[at][number] and not may:
                found.wrong.append(f"seed {seed}, file {at}: {text}")
        some = random.sample(range(FILES), 3)
        irrelevant = all(scans) and not may_match(change(random, *(files[at] for at in some)), scans)
        found.changes += 1
        found.changes_irrelevant += irrelevant
        if irrelevant and any(passing[at][number] for at in some):
            found.wrong.append(f"seed {seed}, files {some}: {text}")
    return found


def conjunctions(text: str) -> tuple[tuple[Predicate, ...], ...]:
    leaf = LeafColumns.of_iceberg(COLUMNS)
    shape = shape_of(f"SELECT i FROM {MARKER}0 WHERE {text}", [leaf], ["i"])
    return relevant(shape.root, [COLUMNS])[0]


def change(random: Random, *files: File) -> Any:
    groups: dict[str, list[Any]] = {"added": [], "removed": [], "altered": []}
    for one in files:
        groups[random.choice(list(groups))].append(one.entry)
    part = SimpleNamespace(files=PartFiles(**{name: tuple(found) for name, found in groups.items()}))
    fields = [{"id": IDS[c], "name": c, "type": t, "required": False} for c, t in COLUMNS.items()]
    return SimpleNamespace(table=SimpleNamespace(schema={"fields": fields}), parts=(part,))


SQL = {"int": "INTEGER", "long": "BIGINT", "string": "VARCHAR", "timestamp": "TIMESTAMP"}


def met(connection: duckdb.DuckDBPyConnection, files: list[File], conditions: list[str]) -> dict[int, list[int]]:
    """File -> of how many rows each condition is true."""
    columns = ", ".join(f"{c} {SQL.get(t, t)}" for c, t in COLUMNS.items())
    connection.execute(f"CREATE OR REPLACE TEMP TABLE t (file INTEGER, {columns})")
    rows = list(rows_of(files))
    if rows:
        connection.execute(f"INSERT INTO t VALUES {', '.join(rows)}")
    tests = [sqlglot.transpile(c, read="spark", write="duckdb")[0] for c in conditions]
    counted = ", ".join(f"count(*) FILTER (WHERE {test})" for test in tests)
    found = {at: [0] * len(conditions) for at in range(len(files))}
    found.update((row[0], list(row[1:])) for row in connection.execute(f"SELECT file, {counted} FROM t GROUP BY file").fetchall())
    return found


def rows_of(files: list[File]) -> Iterator[str]:
    for at, one in enumerate(files):
        for row in one.rows:
            yield f"({at}, {', '.join(literal(found) for found in row.values())})"


def literal(found: Any) -> str:
    if found is None:
        return "NULL"
    if isinstance(found, bool):
        return str(found).lower()
    return f"{found:f}" if isinstance(found, Decimal) else str(found) if isinstance(found, int) else f"'{found}'"
