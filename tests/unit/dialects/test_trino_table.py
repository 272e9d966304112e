"""The table of what Trino computes as Spark does: its page, its trials, and what must never be in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.trino_trials import COLUMNS, groups
from mvbuild.api import compilation
from mvbuild.dialects.proven import ENGINES, Proof, Proofs, of_json, proofs, to_json
from mvbuild.dialects.reference import page
from mvbuild.dialects.translation import translate
from mvbuild.lineage import lock
from mvbuild.lineage.model import Column
from mvbuild.lineage.statement import Input
from mvbuild.parse.sql import parse_query
from mvbuild.source import MappedText, SourceFile

ROOT = Path(__file__).parents[3]
TABLE = proofs("trino")


def test_the_page_is_the_table() -> None:
    """`python -m mvbuild.dialects.reference > docs/trino.md` writes it."""
    assert (ROOT / "docs/trino.md").read_text(encoding="utf-8") == page(TABLE)


def test_the_file_is_what_the_proof_writes() -> None:
    text = (ROOT / "compiler/mvbuild/dialects" / ENGINES["trino"]).read_text(encoding="utf-8")
    assert to_json(of_json(text)) == text


@pytest.mark.proof
def test_nothing_is_proven_that_no_trial_tries() -> None:
    everything = Proofs(version="", proven=_Everything(), differs={})
    tried: set[str] = set()
    for group in groups():
        for sql in group:
            query, wrong = parse_query(MappedText.of(SourceFile("t.sql", sql)))
            assert query is not None, wrong
            columns = tuple(Column(name, type_) for name, type_ in {"id": "bigint", "g": "int", **COLUMNS}.items())
            inputs = [Input(columns=columns, complete=True, spellings=(("lake", "proof", "v"),)) for _ in query.reads]
            tried |= translate(query, inputs, "lake", everything, is_stored=False).used
    assert sorted(TABLE.proven.keys() - tried) == []
    assert sorted(TABLE.proven.keys() & TABLE.differs.keys()) == []


class _Everything(dict[str, Proof]):
    def get(self, key: str, default: object = None) -> Proof:  # type: ignore[override]
        return Proof(cast=False)


DIFFERENT = [
    "avg(decimal)",
    "avg(double)",
    "CAST(decimal AS bigint)",
    "CAST(decimal AS int)",
    "CAST(double AS bigint)",
    "CAST(double AS string)",
    "CAST(timestamp AS string)",
    "CAST(timestamp AS date)",
    "CAST(timestamp_ntz AS string)",
    "CAST(date AS timestamp)",
    "CAST(string AS int)",
    "CAST(date AS string)",
    "CAST(decimal of more than 15 digits AS double)",
    "CAST(string AS decimal)",
    "TRY_CAST(string AS boolean)",
    "TRY_CAST(string AS int)",
    "TRY_CAST(string AS date)",
    "ts_or_ds_to_date(string, safe=true)",
    "double = double",
    "double > double",
    "float = float",
    "double / double",
    "decimal / decimal not 0",
    "decimal * decimal of more than 38 digits",
    "sum(double)",
    "ln(double)",
    "upper(string)",
    "lower(string)",
    "trim(string)",
    "substring(string, 0, 1..)",
    "substring(string, ..-1, 1..)",
    "substring(string, int, int)",
    "replace(string, '', '…')",
    "string LIKE string",
    "row_number() OVER",
    "lag(int) OVER",
    "extract(HOUR, timestamp)",
    "extract(DOW, date)",
    "greatest(int, int, ignore_nulls=true)",
    "sum(DISTINCT double)",
    "avg(int)",
    "avg(bigint)",
    "int IN (query)",
    "GROUP BY double",
    "DISTINCT float",
    "ORDER BY double",
    "any_value(int)",
    "regexp_replace(string, string, string)",
    "string || int",
    "max(double)",
]


@pytest.mark.parametrize("signature", DIFFERENT)
def test_what_is_known_to_differ_is_not_in_the_table(signature: str) -> None:
    assert signature not in TABLE.proven


EQUAL = [
    "int + int",
    "bigint - bigint",
    "decimal + decimal",
    "decimal * decimal",
    "double / double not 0",
    "int = int",
    "string = string",
    "string < string",
    "date BETWEEN date AND date",
    "timestamp = timestamp",
    "timestamp_ntz > timestamp_ntz",
    "CAST(int AS bigint)",
    "CAST(int AS double)",
    "CAST(decimal AS decimal)",
    "CASE bigint",
    "coalesce string",
    "nullif bigint",
    "GROUP BY string",
    "DISTINCT int",
    "UNION ALL",
    "count(*)",
    "count(string)",
    "count(DISTINCT int)",
    "sum(int)",
    "sum(bigint)",
    "sum(decimal)",
    "min(date)",
    "max(decimal)",
    "rank() OVER",
    "sum(int) OVER",
    "extract(YEAR, date)",
    "length(string)",
    "string LIKE '…'",
]


@pytest.mark.parametrize("signature", EQUAL)
def test_what_most_definitions_are_made_of_is_in_the_table(signature: str) -> None:
    assert signature in TABLE.proven


def test_the_lock_that_a_graph_is_judged_by_is_the_lock() -> None:
    assert lock.NAME == compilation.LOCK
