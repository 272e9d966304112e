"""definitions + `dialects:` -> the same query elsewhere, or a diagnostic at the setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvbuild.diagnostics import ProjectError
from mvbuild.graph.dialects import DIALECTS, Inexpressible, translate
from mvbuild.graph.representations import representations
from unit.worlds import compiled

SAID = [
    ("trino", "SELECT `a b`, cast(c AS STRING) AS s FROM lake.raw.`t t`", 'SELECT "a b", CAST(c AS VARCHAR) AS s FROM raw."t t"'),
    ("trino", "SELECT a FROM lake.raw.t ORDER BY a", "SELECT a FROM raw.t ORDER BY a NULLS FIRST"),
    ("trino", "SELECT 'it\\'s' AS s -- remark", "SELECT 'it''s' AS s"),
    ("trino", "SELECT a FROM lake.raw.t VERSION AS OF 12", "SELECT a FROM raw.t FOR VERSION AS OF 12"),
    ("trino", "SELECT /*+ BROADCAST(t) */ a FROM lake.raw.t", "SELECT a FROM raw.t"),
    ("trino", "SELECT CAST(a AS DOUBLE) / NULLIF(b, 0) AS r FROM lake.raw.t", "SELECT CAST(a AS DOUBLE) / NULLIF(b, 0) AS r FROM raw.t"),
    ("trino", "SELECT count(*) AS n, sum(a) AS s, try_cast(b AS INT) AS i FROM lake.raw.t", "SELECT COUNT(*) AS n, SUM(a) AS s, TRY_CAST(b AS INTEGER) AS i FROM raw.t"),
    ("trino", "SELECT extract(YEAR FROM d) AS y FROM lake.raw.t", "SELECT EXTRACT(YEAR FROM d) AS y FROM raw.t"),
    ("duckdb", "SELECT * EXCEPT (a) FROM lake.raw.t", "SELECT * EXCLUDE (a) FROM raw.t"),
    ("bigquery", "SELECT `a b` FROM lake.raw.t", "SELECT `a b` FROM raw.t"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "text", "expected"), SAID)
def test_what_can_be_said(dialect: str, text: str, expected: str) -> None:
    assert translate(text, dialect, "lake") == expected


REFUSED = [
    # sqlglot makes an approximation of it.
    ("trino", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) AS p FROM lake.raw.t", "sqlglot does not keep its meaning"),
    ("trino", "SELECT percentile(a, 0.5) AS p FROM lake.raw.t", "exact quantiles"),
    # Without types nobody knows which division it is.
    ("trino", "SELECT a / b AS r FROM lake.raw.t", "NULLIF"),
    ("duckdb", "SELECT a / b AS r FROM lake.raw.t", "NULLIF"),
    ("trino", "SELECT CAST(a AS DOUBLE) / b AS r FROM lake.raw.t", "NULLIF"),
    ("trino", "SELECT first(a) AS f FROM lake.raw.t", "ANY_VALUE"),
    ("trino", "SELECT my_udf(a) AS f FROM lake.raw.t", "function my_udf"),
    ("trino", "SELECT add_months(d, 1) AS f FROM lake.raw.t", "function ADD_MONTHS"),
    ("trino", "SELECT greatest(a, b) AS g FROM lake.raw.t", "function GREATEST"),
    ("trino", "SELECT a FROM lake.raw.t LEFT ANTI JOIN lake.raw.u USING (id)", "no SEMI or ANTI join"),
    ("trino", "SELECT * EXCEPT (a) FROM lake.raw.t", "no * EXCEPT"),
    ("trino", "SELECT a, count(*) AS n FROM lake.raw.t GROUP BY ALL", "no GROUP BY ALL"),
    ("duckdb", "SELECT a FROM lake.raw.t VERSION AS OF 12", "no time travel"),
    ("trino", "SELECT a FROM lake.raw.daily.t", "nested namespaces"),
    ("trino", "SELECT a FROM spark_catalog.delta.`/raw/t`", "another catalog"),
    ("postgres", "SELECT collect_list(a) AS l FROM lake.raw.t", "function ARRAY_AGG"),
]


@pytest.mark.parametrize(("dialect", "text", "why"), REFUSED)
def test_what_is_refused(dialect: str, text: str, why: str) -> None:
    with pytest.raises(Inexpressible, match=why.replace("*", r"\*")):
        translate(text, dialect, "lake")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_takes_a_plain_query(dialect: str) -> None:
    said = translate("SELECT o.id, count(*) AS n FROM lake.raw.orders AS o WHERE o.id > 1 GROUP BY o.id", dialect, "lake")
    assert "lake" not in said
    assert "raw" in said


def project(sql: str, dialects: str) -> dict[str, str]:
    return {
        "mvbuild.yml": "name: shop\n",
        "models/m.sql": f"{sql}\n",
        "models/m.yml": f"models:\n  - name: m\n    config:\n      dialects: {dialects}\n",
    }


def test_a_model_that_cannot_be_said_is_an_error_at_the_setting(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        compiled(tmp_path, project("SELECT a / b AS r FROM raw.t", "[trino, duckdb]"))
    found = [(d.code, str(d.span)) for d in caught.value.diagnostics]
    assert found == [("unsupported-dialect", "models/m.yml:4:17")] * 2
    assert "cannot be written for trino" in caught.value.diagnostics[0].message


def test_a_dialect_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        compiled(tmp_path, project("SELECT a FROM raw.t", "[tirno, oracle]"))
    assert [(d.code, str(d.span), d.help) for d in caught.value.diagnostics] == [
        ("bad-config", "models/m.yml:4:17", "Did you mean 'trino'?")
    ]


def test_representations(tmp_path: Path) -> None:
    graph = compiled(tmp_path, project("SELECT r.a FROM raw.t r", "[trino, spark, Trino]"))
    node = graph.model("model.shop.m")
    assert representations(graph, node, ["a"], of_storage=False) == {
        "spark": "SELECT r.a FROM lake.raw.t r",
        "trino": "SELECT r.a FROM raw.t AS r",
    }
    assert representations(graph, node, ["a", "x y"], of_storage=True) == {
        "spark": "SELECT a, `x y` FROM lake.main.m__storage",
        "trino": 'SELECT a, "x y" FROM main.m__storage',
    }


def test_a_view_of_the_storage_needs_no_words_for_the_definition(tmp_path: Path) -> None:
    files = project("SELECT a / b AS r FROM raw.t", "[trino]")
    files["models/m.yml"] += "      catalog_view: storage\n"
    assert compiled(tmp_path, files).model("model.shop.m").model.config.catalog_view == "storage"
