"""expressions -> which of them give the same in a real Trino as in Spark: compiler/mvbuild/dialects/trino.json and docs/trino.md.

    .venv/bin/python tests/benchmarks/trino_proof.py [--seed 7] [--rows 220] [--only 'sum(']

Both engines read one Iceberg table, of edge values, all pairs of them, and random values. Each trial is a query that is translated as a
definition is, and compared row by row, with Trino's session in another time zone than Spark's. Where a query fails in one of the two, it is
taken apart until it is the same rows that fail in both. A Java 24 or newer, and 820 MB from Maven Central, are needed: see tests/servers/trino.py.
"""

from __future__ import annotations

import argparse
import base64
import math
import os
import random
import re
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.trino_trials import COLUMNS, TABLE, groups
from mvbuild.adapters.spark import start_engine
from mvbuild.dialects.engine_types import trino_type
from mvbuild.dialects.proven import ENGINES, Proof, Proofs, proofs, to_json
from mvbuild.dialects.reference import page
from mvbuild.dialects.translation import Translation, translate
from mvbuild.lineage.model import Column
from mvbuild.lineage.statement import Input, typed_query
from mvbuild.lineage.types import text as type_text
from mvbuild.parse.sql import parse_query
from mvbuild.project.loaded import SparkSettings, Target
from mvbuild.source import MappedText, SourceFile
from servers import rest, trino
from spark import quick

ROOT = Path(__file__).parents[2]
TABLE_OF_PROOFS = ROOT / "compiler" / "mvbuild" / "dialects" / ENGINES["trino"]
PAGE = ROOT / "docs" / "trino.md"
_ZONES = ("America/New_York", "Asia/Kathmandu")
"""Of the sessions of Spark and of Trino: what depends on the zone is not the same."""
_AS_NUMBER = {"timestamp": "unix_micros({})", "timestamp_ntz": "CAST({} AS STRING)", "date": "CAST(unix_date({}) AS BIGINT)"}
_SAMPLE = 5
"""Rows on which a trial fails, or gives null, that are looked at one by one where it fails for some."""
_OF_ROWS = re.compile(r'FROM \(SELECT "id", ((?:(?! OVER \()(?! IN \(SELECT).)+) AS "r" FROM "proof"\."v" AS "v"\) AS "mv"')

EDGES: Mapping[str, Sequence[Any]] = {
    "boolean": [None, True, False],
    "int": [None, 0, 1, -1, 2, 7, -7, 12, 100, 365, 2**31 - 1, -(2**31)],
    "bigint": [None, 0, 1, -1, 2, 7, -7, 100, 2**53 + 1, 10**15 + 3, 2**63 - 1, -(2**63)],
    "decimal(10,2)": [None, "0", "0.01", "-0.01", "1.50", "2.50", "-2.50", "0.49", "99999999.99", "-99999999.99", "0.10", "7"],
    "decimal(18,4)": [None, "0", "0.0001", "1.0050", "-1.5", "2.6750", "99999999999999.9999", "3.3333", "-0.5", "0.5", "10", "12.34"],
    "decimal(38,10)": [None, "0", "0.0000000001", "-0.0000000001", "1.5", "9999999999999999999999999999.9999999999", "-2.5", "7", "0.1", "3", "2", "1"],
    "decimal(15,7)": [None, "0", "0.0000001", "-0.0000001", "12345678.9999999", "99999999.9999999", "0.1", "0.3", "1.1", "7", "-2.5", "3.3333333"],
    "decimal(5,0)": [None, 0, 1, -1, 2, 7, -7, 99999, -99999, 10, 100, 12],
    "double": [None, 0.0, -0.0, 1.0, -1.5, 2.5, 0.1, float("nan"), math.inf, -math.inf, 1.005, 1e300],
    "float": [None, 0.0, -0.0, 1.0, -1.5, 2.5, 0.1, float("nan"), math.inf, -math.inf, 3.3, 1e30],
    "string": [None, "", " a ", "\ta\t", "Straße", "İi", "ab", "abc", "a%b_c", "é😀x", "yes", "b"],
    "date": [None, "0001-01-01", "1582-10-04", "1582-10-15", "1969-12-31", "1970-01-01", "2000-02-29", "2023-01-31", "2024-12-31", "9999-12-31", "2024-02-29", "2021-01-01"],
    "timestamp": [None, "0001-01-01 00:00:00", "1582-10-10 12:00:00", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2000-02-29 01:02:03.000004", "2023-03-26 01:30:00", "2023-10-29 00:30:00", "9999-12-31 23:59:59.999999", "2024-11-03 05:30:00", "2024-06-01 12:00:00", "2024-06-01 12:00:00.5"],
    "timestamp_ntz": [],
    "binary": [None, b"", b"a", b"ab", b"\x00", b"\xff\xfe", b"\x7f", b"\x80", b"b", b"abc", b"\x00\x00", b"A"],
}  # fmt: skip


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--rows", type=int, default=220)
    options.add_argument("--keep", action="store_true", help="what the table has already is not tried again")
    options.add_argument("--only", default="", help="print the trials whose query has this text; nothing is written")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="trino-proof-") as folder, Engines(Path(folder)) as (spark, server):
        _fill(spark, given.rows, random.Random(given.seed))
        bench = Bench(spark=spark, trino=server, rows=given.rows + len(_FAR))
        found = _tried(bench, proofs("trino") if given.keep else Proofs(version=trino.VERSION, proven={}, differs={}), given.only)
    if not given.only:
        TABLE_OF_PROOFS.write_text(to_json(found), encoding="utf-8")
        PAGE.write_text(page(found), encoding="utf-8")
    print(f"seed {given.seed}: {len(found.proven)} signatures are proven, {len(found.differs)} differ")
    return 0


class Engines:
    """A Spark and a Trino over one REST catalog."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __enter__(self) -> tuple[Any, trino.Trino]:
        from contextlib import ExitStack

        self._stack = ExitStack()
        server = self._stack.enter_context(rest.running(self._root))
        config = {
            "spark.driver.memory": "1g",
            "spark.sql.session.timeZone": _ZONES[0],
            "spark.ui.enabled": "false",
            **quick.JVM,
            **quick.QUERIES,
        }
        settings = SparkSettings(master="local[1]", config=config)
        target = Target(
            name="proof", catalog_name="lake", catalog=server.properties, namespace=("proof",), spark=settings, threads=1, embedded=False
        )
        engine = start_engine(target, log_file=self._root / "spark.log", env=os.environ, sources=[])
        self._stack.callback(engine.close)
        found = self._stack.enter_context(trino.running(self._root / "trino", server.uri))
        return engine.session, found  # type: ignore[attr-defined]

    def __exit__(self, *exc: object) -> None:
        self._stack.close()


# Values


def _fill(spark: Any, rows: int, chance: random.Random) -> None:
    from pyspark.sql import types as of

    names: list[tuple[str, str]] = [("id", "bigint"), ("g", "int"), *COLUMNS.items()]
    seen: Counter[str] = Counter()
    which = {name: seen.update([type_]) or seen[type_] - 1 for name, type_ in COLUMNS.items()}
    made = [
        (n, n % 10, *(_value(type_, n, which[name], chance) for name, type_ in COLUMNS.items()))
        for n in range(rows)
    ]  # fmt: skip
    schema = of.StructType([of.StructField(name, _spark_type(type_), True) for name, type_ in names])
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.proof")
    spark.createDataFrame(made, schema).coalesce(1).writeTo(TABLE).create()
    # Python has no such years.
    far = ", ".join(f"({rows + n}, 1, date_add(DATE '{day}', {days}), DATE '2024-01-01')" for n, (day, days) in enumerate(_FAR))
    spark.sql(f"INSERT INTO {TABLE} (id, g, t1, t2) VALUES {far}")


_FAR = (("9999-12-31", 100), ("0001-01-01", -700))


def _spark_type(type_: str) -> Any:
    from pyspark.sql.types import _parse_datatype_string

    return _parse_datatype_string(type_)


def _value(type_: str, row: int, column: int, chance: random.Random) -> Any:
    """First all pairs of edges, then any."""
    edges = EDGES["timestamp" if type_ == "timestamp_ntz" else type_]
    size = len(edges)
    if row < size * size:
        return _typed(type_, edges[row % size if column == 0 else row // size if column == 1 else chance.randrange(size)])
    if chance.random() < 0.3:
        return _typed(type_, edges[chance.randrange(size)])
    return _typed(type_, _random(type_, chance))


def _random(type_: str, chance: random.Random) -> Any:
    if type_.startswith("decimal"):
        precision, scale = map(int, type_[8:-1].split(","))
        return str(Decimal(chance.randrange(-(10 ** chance.randint(1, precision)) + 1, 10 ** chance.randint(1, precision))).scaleb(-scale))
    day = date(1, 1, 1) + timedelta(days=chance.randrange(3652058))
    moment = datetime(1900, 1, 1) + timedelta(microseconds=chance.randrange(200 * 365 * 86400 * 10**6))
    return {
        "boolean": lambda: chance.random() < 0.5,
        "int": lambda: chance.randrange(-(2 ** (n := chance.choice((4, 8, 12, 15, 15, 31)))), 2**n),
        "bigint": lambda: chance.randrange(-(2 ** (n := chance.choice((8, 16, 24, 31, 31, 63)))), 2**n),
        "double": lambda: struct.unpack(">d", chance.randbytes(8))[0] if chance.random() < 0.3 else chance.uniform(-1000, 1000),
        "float": lambda: struct.unpack(">f", chance.randbytes(4))[0] if chance.random() < 0.3 else chance.uniform(-1000, 1000),
        "string": lambda: "".join(chance.choice("abcAB %_\t\n.-0189éßİıΣς日本😀\u0301") for _ in range(chance.randint(0, 8))),
        "date": lambda: day.isoformat(),
        "timestamp": lambda: moment.isoformat(" "),
        "timestamp_ntz": lambda: moment.isoformat(" "),
        "binary": lambda: chance.randbytes(chance.randint(0, 5)),
    }[type_]()


def _typed(type_: str, value: Any) -> Any:
    if value is None:
        return None
    if type_.startswith("decimal"):
        return Decimal(str(value))
    if type_ == "date":
        return date.fromisoformat(value)
    if type_ == "timestamp":
        return datetime.fromisoformat(value).replace(tzinfo=timezone.utc)
    return datetime.fromisoformat(value) if type_ == "timestamp_ntz" else value


# Trials


class NotInSpark(Exception):
    """A trial that Spark does not run: there is nothing to compare with."""


class Differs(Exception):
    """What the first row is that is not the same."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    spark: Any
    trino: trino.Trino
    rows: int

    def check(self, sql: str, translated: str) -> None:
        """Raises Differs."""
        one, two = self._spark(sql), self._trino(translated)
        if isinstance(one, list) and isinstance(two, list):
            _compare(one, two)
        elif match := _OF_ROWS.search(translated):
            self._check_rows(sql, translated, translated[: match.start(1)] + f"TRY({match[1]})" + translated[match.end(1) :])
        else:
            self._check_parts(sql, translated, 0, self.rows)

    def _check_rows(self, sql: str, translated: str, trying: str) -> None:
        """Some rows fail, and TRY shows which: null stands for a failure, or for a null."""
        tried = self._trino(trying)
        if isinstance(tried, str):
            raise Differs(f"Trino {tried}")
        empty = [row[0] for row in tried if row[1] is None]
        calm = f"id NOT IN ({', '.join(map(str, empty)) or '-1'})"
        one, two = self._spark(sql, calm), self._trino(translated, calm)
        if isinstance(one, str) or isinstance(two, str):
            raise Differs(_said(one, two))
        _compare(one, two)
        for row in random.Random(len(sql)).sample(empty, min(len(empty), _SAMPLE)):
            alone = f"id = {row}"
            one, two = self._spark(sql, alone), self._trino(translated, alone)
            if isinstance(one, str) != isinstance(two, str):
                raise Differs(_said(one, two))
            if isinstance(one, list) and isinstance(two, list):
                _compare(one, two)

    def _check_parts(self, sql: str, translated: str, low: int, high: int) -> None:
        """It fails for all rows together, and is taken apart."""
        part = f"id >= {low} AND id < {high}"
        one, two = self._spark(sql, part), self._trino(translated, part)
        if isinstance(one, list) and isinstance(two, list):
            _compare(one, two)
            return
        if high - low == 1:
            if isinstance(one, list) or isinstance(two, list):
                raise Differs(_said(one, two))
            return
        middle = (low + high) // 2
        self._check_parts(sql, translated, low, middle)
        self._check_parts(sql, translated, middle, high)

    def _spark(self, sql: str, where: str = "true") -> list[tuple[Any, ...]] | str:
        part = f"(SELECT * FROM {TABLE} WHERE {where})"
        try:
            frame = self.spark.sql(sql.replace(TABLE, part))
            types = [f.dataType.simpleString() for f in frame.schema]
            rows = frame.selectExpr(
                *(_AS_NUMBER.get(t, "{}").format(f"`{f.name}`") for f, t in zip(frame.schema, types, strict=True))
            ).collect()
        except Exception as exc:  # noqa: BLE001
            return f"fails: {str(exc).splitlines()[0][:120]}"
        return [tuple(_of_spark(v, t) for v, t in zip(row, types, strict=True)) for row in rows]

    def _trino(self, sql: str, where: str = "true") -> list[tuple[Any, ...]] | str:
        short = '"proof"."v"'
        try:
            found = self.trino.run(sql.replace(short, f"(SELECT * FROM {short} WHERE {where})"), zone=_ZONES[1])
        except trino.TrinoError as exc:
            return f"fails: {str(exc).splitlines()[0][:120]}"
        return [tuple(_of_trino(v, t) for v, t in zip(row, found.types, strict=True)) for row in found.rows]

    def fails(self, sql: str) -> bool:
        """Whether there is a row for which Spark fails."""
        return isinstance(self._spark(sql), str)

    def schema(self, sql: str) -> list[str]:
        """The types that Spark gives. Raises NotInSpark."""
        try:
            return [f.dataType.simpleString() for f in self.spark.sql(sql).schema]
        except Exception as exc:
            raise NotInSpark(str(exc).splitlines()[0]) from exc

    def type_of(self, translated: str) -> list[str] | str:
        """Of the columns before they are cast to what the view declares."""
        inner = translated[translated.index(" FROM (") + 7 : translated.rindex(') AS "mv"(')]
        try:
            return list(self.trino.run(f"SELECT * FROM ({inner}) AS x LIMIT 0").types)
        except trino.TrinoError as exc:
            return f"fails: {str(exc).splitlines()[0][:160]}"


def _of_spark(value: Any, type_: str) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, float):
        return _float(value, single=type_ == "float")
    return base64.b64encode(bytes(value)).decode() if isinstance(value, (bytes, bytearray)) else value


def _of_trino(value: Any, type_: str) -> Any:
    if value is None:
        return None
    if type_ in ("double", "real"):
        return _float(float(value), single=type_ == "real")
    if type_.startswith("decimal"):
        return _decimal(Decimal(value))
    if type_ == "date":
        return _days(*(int(part) for part in re.fullmatch(r"([+-]?\d+)-(\d\d)-(\d\d)", value).groups()))  # type: ignore[union-attr]
    if type_.endswith("time zone"):
        return _micros(value)
    # Spark writes no zeros at the end.
    return re.sub(r"\.?0*$", "", value, count=1) if type_.startswith("timestamp") and "." in value else value


def _decimal(value: Decimal) -> str:
    """Both have the same type, so that zeros at the end say nothing."""
    digits = format(value, "f")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return "0" if digits == "-0" else digits


def _days(year: int, month: int, day: int) -> int:
    """Since 1970, in the calendar that has always been the Gregorian one, for any year."""
    cycles, year = divmod(year, 400)
    return (date(year + 400, month, day) - date(1970, 1, 1)).days + (cycles - 1) * 146_097


def _micros(value: str) -> int | str:
    """Since 1970, of a time with a zone."""
    text, _, zone = value.rpartition(" ")
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    except ValueError:
        return value
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)


def _float(value: float, *, single: bool) -> str:
    return (
        "NaN"
        if math.isnan(value)
        else struct.pack(">f" if single else ">d", value).hex()
        if not single or abs(value) < 3.5e38 or math.isinf(value)
        else repr(value)
    )


def _compare(one: Sequence[tuple[Any, ...]], two: Sequence[tuple[Any, ...]]) -> None:
    ours, theirs = Counter(one), Counter(two)
    if ours != theirs:
        left, right = sorted((ours - theirs).elements(), key=repr), sorted((theirs - ours).elements(), key=repr)
        same = next(((a, b) for a in left for b in right if a[:-1] == b[:-1]), (left[:1], right[:1]))
        raise Differs(f"Spark {_shown(same[0])}, Trino {_shown(same[1])}")


def _said(one: Any, two: Any) -> str:
    return f"Spark {one if isinstance(one, str) else 'gives a row'}, Trino {two if isinstance(two, str) else 'gives a row'}"


def _shown(row: Any) -> str:
    row = row[0] if isinstance(row, list) and row else row
    if not row:
        return "no such row"
    return repr(row[-1])[:60] if isinstance(row, tuple) else repr(row)[:60]


class _Assumed(dict[str, Proof]):
    """What is proven, and all else as if it were."""

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key, Proof(cast=False))


def _translated(sql: str, proven: Mapping[str, Proof]) -> Translation:
    query, problems = parse_query(MappedText.of(SourceFile("trial.sql", sql)))
    assert query is not None, (sql, problems)
    inputs = [_input() for _ in query.reads]
    return translate(query, inputs, "lake", Proofs(version=trino.VERSION, proven=_Assumed(proven), differs={}), is_stored=False)


def _input() -> Input:
    columns = tuple(Column(name, type_) for name, type_ in {"id": "bigint", "g": "int", **COLUMNS}.items())
    return Input(columns=columns, complete=True, spellings=(("lake", "proof", "v"),))


def _tried(bench: Bench, known: Proofs, only: str) -> Proofs:
    proven, differs = dict(known.proven), dict(known.differs)
    for group in groups():
        if only and not any(only in one for one in group):
            continue
        for signature, outcome in _outcome(bench, group, proven, differs):
            if isinstance(outcome, Proof):
                proven[signature] = outcome
            else:
                differs[signature] = outcome
            print(f"{'same' if isinstance(outcome, Proof) else 'DIFFERS':8} {signature:45} {outcome}", flush=True)
    return Proofs(version=trino.VERSION, proven=proven, differs=differs)


def _outcome(
    bench: Bench, group: Sequence[str], proven: Mapping[str, Proof], differs: Mapping[str, str]
) -> Iterator[tuple[str, Proof | str]]:
    first = _translated(group[0], proven)
    new = sorted(first.used - proven.keys())
    if first.sql is None:
        print(f"refused  {group[0]}: {[r.what for r in (*first.refusals, *first.unknown)]}")
        return
    if not new or any(signature in differs for signature in new):
        print(f"skipped  {group[0]}: {new or 'nothing new'}")
        return
    if len(new) > 1:
        print(f"together {group[0]}: {new}")
    found: Proof | str = Proof(cast=False, trials=len(group))
    for sql in _together(bench, group, {**proven, **dict.fromkeys(new, found)}, new):
        try:
            casts = _of(bench, sql, {**proven, **{s: found for s in new if isinstance(found, Proof)}}, new)
            found = Proof(cast=found.cast or casts, trials=len(group)) if isinstance(found, Proof) else found
        except NotInSpark as exc:
            print(f"no query {sql}: {exc}")
            return
        except Differs as exc:
            found = str(exc)
            print(f"         {sql}")
            break
    for signature in new:
        is_key = signature.startswith(("GROUP BY", "ORDER BY", "DISTINCT"))
        yield signature, Proof(cast=False, trials=found.trials) if is_key and isinstance(found, Proof) else found


def _together(bench: Bench, group: Sequence[str], proven: Mapping[str, Proof], new: Sequence[str]) -> Sequence[str]:
    """One query with all expressions of a group, where it fails for no row and gives the same; else they are tried one by one."""
    parts = [match[1] for sql in group if (match := re.fullmatch(r"SELECT id, (.*) AS r FROM \S+ AS v", sql))]
    if len(parts) < 2 or len(parts) != len(group):
        return group
    sql = f"SELECT id, {', '.join(f'{part} AS r{n}' for n, part in enumerate(parts))} FROM {TABLE} AS v"
    with suppress(Differs, NotInSpark):
        if not bench.fails(sql):
            return [sql] if _of(bench, sql, proven, new) else ()
    return group


def _of(bench: Bench, sql: str, proven: Mapping[str, Proof], new: Sequence[str]) -> bool:
    """Whether the engine's own type is another one."""
    given = _translated(sql, proven)
    if given.sql is None:
        raise Differs(f"{[r.what for r in (*given.refusals, *given.unknown)]}")
    if not given.used <= proven.keys() | set(new):
        raise Differs(f"needs {sorted(given.used - proven.keys() - set(new))}")
    query, _ = parse_query(MappedText.of(SourceFile("trial.sql", sql)))
    assert query is not None
    typed = typed_query(query, [_input() for _ in query.reads])
    assert typed is not None
    wanted = [c.value.type for c in typed.relation.columns]
    real = bench.schema(sql)
    if [type_text(t) for t in wanted] != real:
        raise Differs(f"mvbuild takes it for {[type_text(t) for t in wanted]}, and Spark gives {real}")
    types = bench.type_of(given.sql)
    if isinstance(types, str):
        raise Differs(f"Trino {types}")
    casts = [t.lower().replace(" ", "") for t in types] != [(trino_type(t) or "").lower().replace(" ", "") for t in wanted]
    casts = casts and not all(a == b or (a.startswith("varchar(") and b == "varchar") for a, b in zip([t.lower().replace(" ", "") for t in types], [(trino_type(t) or "").lower().replace(" ", "") for t in wanted], strict=True))  # fmt: skip
    if casts:
        given = _translated(sql, {**proven, **{s: Proof(cast=True) for s in new}})
        assert given.sql is not None
    bench.check(sql, given.sql)
    return casts


if __name__ == "__main__":
    raise SystemExit(main())
