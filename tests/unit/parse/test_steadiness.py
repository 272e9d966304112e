"""Words that make the result depend on more than the tables."""

from __future__ import annotations

import pytest

from mvbuild.parse.determinism import nondeterministic_word


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT current_timestamp() AS at FROM t", "current_timestamp"),
        ("SELECT a FROM t WHERE day > CURRENT_DATE - INTERVAL 7 DAYS", "CURRENT_DATE"),
        ("SELECT a, now() FROM t", "now"),
        ("SELECT unix_timestamp() AS s FROM t", "unix_timestamp"),
        ("SELECT rand() AS r FROM t", "rand"),
        ("SELECT uuid() FROM t", "uuid"),
        ("SELECT a FROM t WHERE owner = current_user()", "current_user"),
        ("SELECT a FROM t WHERE day = DATE 'today'", "today"),
        ("SELECT a FROM t WHERE day = DATE ' today UTC'", " today UTC"),
        ("SELECT a FROM t WHERE at > TIMESTAMP '10:30'", "10:30"),
        ("SELECT a, `now`() FROM t", "now"),
        ("SELECT a FROM t TABLESAMPLE (5 PERCENT)", "TABLESAMPLE"),
        ("SELECT a FROM t TABLESAMPLE (5 PERCENT) REPEATABLE (1)", "TABLESAMPLE"),
        ("SELECT a FROM t WHERE s = '${cut}'", "${cut}"),
        ("SELECT a FROM t WHERE s = '${env:CUT}'", "${env:CUT}"),
        ("SELECT a FROM t WHERE s = '${system:user.name}' OR s = '${hivevar:x}'", "${system:user.name}"),
        ("SELECT a FROM t WHERE s = r'${hiveconf:x}'", "${hiveconf:x}"),
        ('SELECT a FROM t WHERE s = "x${spark:app.name:default}"', "${spark:app.name:default}"),
        ("SELECT a AS `${cut}` FROM t", "${cut}"),
        ("SELECT a FROM t -- ${cut}\n", "${cut}"),
        ("SELECT a FROM t WHERE s = '${x${cut}}'", "${x${cut}"),
        ("SELECT a, my_udf(a) FROM t", "my_udf"),
        ("SELECT a FROM t WHERE v > Limit_Of (a)", "Limit_Of"),
        ("SELECT a, my_udf /* of ours */ (a) FROM t", "my_udf"),
        ("SELECT a, `abs2`(a) FROM t", "abs2"),
        (f"SELECT a, my_udf -- {'and ' * 40}\n (a) FROM t", "my_udf"),
        (f"SELECT a, {'x' * 100}(a) FROM t", "x" * 100),
        (f"SELECT a, my_udf{' ' * 100}(a) FROM t", "my_udf"),
        ("SELECT a, raw.abs(a) FROM t", "abs"),
        ("SELECT a, spark_catalog.default.f(a) FROM t", "f"),
        ("SELECT * FROM my_table_function(1)", "my_table_function"),
        ("SELECT a FROM t LATERAL VIEW my_rows(a) x AS b", "my_rows"),
        ("WITH f(a) AS (SELECT 1) SELECT g(a) FROM f", "g"),
        ("SELECT system.session.cut FROM t", "session"),
        ("SELECT `system`.`session`.`cut` FROM t", "session"),
        ("SELECT IDENTIFIER(cut) FROM t", "IDENTIFIER"),
        ("SELECT aes_encrypt(a, 'k') FROM t", "aes_encrypt"),
        ("SELECT aes_encrypt(concat(a, b, c, d, e), 'k', 'GCM', 'DEFAULT') FROM t", "aes_encrypt"),
        ("SELECT TRANSFORM (a) USING 'cat' AS (x) FROM t", "USING"),
        ('FROM t MAP a USING "cat" AS x', "USING"),
        ("SELECT TRANSFORM (a) USING -- so\n /* it */ 'cat' AS (x) FROM t", "USING"),
        ("SELECT aes_encrypt('ECB', k) FROM t", "aes_encrypt"),
        ("SELECT aes_encrypt(a, k, 'GCM', 'ECB') FROM t", "aes_encrypt"),
        ("SELECT aes_encrypt(a, k, 'GCM', 'DEFAULT', '', 'aad') FROM t", "aes_encrypt"),
        ("SELECT aes_encrypt(a, k, 'GCM', 'DEFAULT', unhex(''), 'aad') FROM t", "aes_encrypt"),
        ("SELECT aes_encrypt(a, k, 'GCM', 'DEFAULT', iv) FROM t", "aes_encrypt"),
    ],
)
def test_found(sql: str, word: str) -> None:
    assert nondeterministic_word(sql) == word


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t",
        "SELECT uuid, now, user, version FROM t",
        "SELECT t.current_date FROM t",
        "SELECT aes_encrypt(a, 'k', 'ECB'), aes_encrypt(a, 'k', 'GCM', 'DEFAULT', unhex('00')), aes_encrypt FROM t",
        "SELECT aes_encrypt(f.a, coalesce(k, 'k'), 'gcm', 'DEFAULT', X'00', concat(b, 'ECB')) FROM t AS f",
        "SELECT a FROM t JOIN u USING (a)",
        "SELECT a AS current_date FROM t",
        "SELECT `current_date` FROM t",
        "SELECT unix_timestamp(a) AS s FROM t",
        "SELECT a FROM t WHERE s = 'now'",
        "SELECT a FROM t -- current_date",
        "SELECT a FROM t WHERE s = '${ cut}' OR s = '${other:cut}' OR s = '${}' OR s = '$cut'",
        "SELECT abs(a), `upper`(s), system.bucket(4, a), COUNT (*), date_add(d, 1), CAST(a AS DECIMAL (10, 2)) FROM t",
        "SELECT p FROM t AS x(p, q) JOIN u y (r) ON (p = r) WHERE a IN (1) AND (p) IN (SELECT (p) FROM t)",
        "WITH one(a) AS (SELECT 1), two (b) AS (SELECT 2) SELECT a, b FROM one, two",
        "SELECT a, rank() OVER (PARTITION BY (a)) FROM t -- my_udf (x)",
        "SELECT 'my_udf (a)' AS text FROM VALUES (1), (2) AS v(a)",
        "SELECT session.user_id FROM visits AS session",
        "SELECT IDENTIFIER('a') FROM t",
    ],
)
def test_not_found(sql: str) -> None:
    assert nondeterministic_word(sql) == ""


def test_text_is_text_where_spark_does_not_replace_variables() -> None:
    assert nondeterministic_word("SELECT a FROM t WHERE s = '${cut}'", substituted=False) == ""
    assert nondeterministic_word("SELECT a FROM t WHERE s = '${cut}' AND day > current_date", substituted=False) == "current_date"


@pytest.mark.parametrize("name", ["user", "`current_date`", "current_user", "session_user"])
def test_a_name_is_a_function_unless_a_column_has_it(name: str) -> None:
    sql, plain = f"SELECT a FROM t WHERE s = {name}", name.strip("`")
    assert nondeterministic_word(sql, columns=["a", "s"]) == plain
    assert nondeterministic_word(sql.replace(name, f"t.{name}"), columns=["a", "s"]) == ""
    if name == "user":
        assert nondeterministic_word(sql, columns=["a", "USER"]) == ""
        assert nondeterministic_word("SELECT user FROM (SELECT a AS user FROM t)", columns=["a"]) == ""
