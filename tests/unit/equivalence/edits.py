"""Edits of one query, as people make them: old text, new text, the rung that they are on, and what is said of them.

The tables are t (id, a, b, s, day) and u (id, x, y). `SAME` are the same query, `OTHER` are not, or it is not certain.
"""

from __future__ import annotations

NAMES = "only names, or the arrangement of CTEs and aliases inside"
PROOF = f"{NAMES}; Spark has to prove that it is still the same query"
WRITTEN = "written differently, but the same query"
FORMATTING = "only formatting and comments"

TU = "FROM t JOIN u ON t.id = u.id"

SAME = {
    # The same tokens
    "a comment": ("SELECT a FROM t", "SELECT a -- why\nFROM t", "tokens", FORMATTING),
    "keywords in lower case": (
        "SELECT a, count(*) AS n FROM t GROUP BY a",
        "select a, COUNT(*) as n\nfrom t\ngroup by a",
        "tokens",
        FORMATTING,
    ),
    "a hint in a comment": ("SELECT a FROM t WHERE a > 1", "SELECT a /* old: b */ FROM t\nWHERE a > 1;", "tokens", FORMATTING),
    # The same but for names
    "another alias of a table": ("SELECT o.a FROM t AS o WHERE o.s = '1'", "SELECT x.a FROM t x WHERE x.s = '1'", "names", NAMES),
    "another name of a CTE": (
        "WITH c AS (SELECT a FROM t) SELECT c.a FROM c",
        "WITH e AS (SELECT a FROM t) SELECT e.a FROM e",
        "names",
        NAMES,
    ),
    "a CTE inlined": ("WITH c AS (SELECT a FROM t) SELECT c.a FROM c", "SELECT c.a FROM (SELECT a FROM t) AS c", "names", NAMES),
    "CTEs in another order": (
        "WITH c AS (SELECT a, id FROM t WHERE a > 1), e AS (SELECT id FROM u) SELECT c.a FROM c JOIN e ON c.id = e.id",
        "WITH e AS (SELECT id FROM u), c AS (SELECT a, id FROM t WHERE a > 1) SELECT c.a FROM c JOIN e ON c.id = e.id",
        "names",
        NAMES,
    ),
    "a CTE that is not used": (
        "WITH c AS (SELECT a FROM t), e AS (SELECT 1 AS o) SELECT a FROM c",
        "WITH c AS (SELECT a FROM t) SELECT a FROM c",
        "names",
        NAMES,
    ),
    "a column inside": (
        "WITH c AS (SELECT s, sum(a) AS total FROM t GROUP BY s) SELECT s, total FROM c WHERE total > 3",
        "WITH c AS (SELECT s, sum(a) AS amount FROM t GROUP BY s) SELECT s, amount AS total FROM c WHERE amount > 3",
        "names",
        NAMES,
    ),
    "the columns of a CTE": (
        "WITH c (k, n) AS (SELECT a, b FROM t) SELECT n AS b FROM c",
        "WITH c (p, q) AS (SELECT a, b FROM t) SELECT q AS b FROM c",
        "names",
        NAMES,
    ),
    "parentheses": ("SELECT a FROM t WHERE (a > 1) AND ((b) = 2)", "SELECT a FROM t WHERE a > 1 AND b = 2", "names", NAMES),
    "the case of a table's alias": ("SELECT o.a FROM t AS o", "SELECT O.a FROM t AS O", "names", "only the case of names"),
    # The same after rewriting
    "conditions in another order": ("SELECT a FROM t WHERE a > 1 AND b = 2", "SELECT a FROM t WHERE b = 2 AND a > 1", "rewriting", WRITTEN),
    "sides of a comparison": ("SELECT a FROM t WHERE a > 1", "SELECT a FROM t WHERE 1 < a", "rewriting", WRITTEN),
    "BETWEEN": ("SELECT a FROM t WHERE a BETWEEN 1 AND 3", "SELECT a FROM t WHERE a >= 1 AND a <= 3", "rewriting", WRITTEN),
    "NOT": ("SELECT a FROM t WHERE NOT (a = 1 OR b <> 2)", "SELECT a FROM t WHERE a <> 1 AND b = 2", "rewriting", WRITTEN),
    "IN": ("SELECT a FROM t WHERE a IN (1, 2)", "SELECT a FROM t WHERE a IN (2, 1, 1)", "rewriting", WRITTEN),
    "IF and CASE": ("SELECT IF(a > 1, b, id) AS v FROM t", "SELECT CASE WHEN a > 1 THEN b ELSE id END AS v FROM t", "rewriting", WRITTEN),
    "count(1)": ("SELECT count(1) AS n FROM t", "SELECT count(*) AS n FROM t", "rewriting", WRITTEN),
    "a cast": ("SELECT a::INT AS a FROM t", "SELECT CAST(a AS INT) AS a FROM t", "rewriting", WRITTEN),
    "GROUP BY 1": ("SELECT a, sum(b) AS v FROM t GROUP BY 1", "SELECT a, sum(b) AS v FROM t GROUP BY a", "rewriting", WRITTEN),
    "groups in another order": (
        "SELECT a, s, sum(b) AS v FROM t GROUP BY a, s",
        "SELECT a, s, sum(b) AS v FROM t GROUP BY s, a",
        "rewriting",
        WRITTEN,
    ),
    "an order of rows": ("SELECT a FROM t ORDER BY a", "SELECT a FROM t", "rewriting", WRITTEN),
    "an inner join's condition": (f"SELECT t.a, u.x {TU} WHERE u.y > 1", f"SELECT t.a, u.x {TU} AND u.y > 1", "rewriting", WRITTEN),
    "a join with a comma": ("SELECT t.a, u.x FROM t, u WHERE t.id = u.id", f"SELECT t.a, u.x {TU}", "rewriting", WRITTEN),
    "INNER and OUTER": (
        "SELECT t.a, u.x FROM t LEFT JOIN u ON t.id = u.id",
        "SELECT t.a, u.x FROM t LEFT OUTER JOIN u ON t.id = u.id",
        "rewriting",
        WRITTEN,
    ),
    "a CTE that filters": (
        "WITH c AS (SELECT a, b FROM t WHERE a > 1) SELECT a FROM c",
        "SELECT a FROM t WHERE a > 1",
        "rewriting",
        WRITTEN,
    ),
    "a CTE that renames": ("WITH c AS (SELECT a AS p FROM t) SELECT p + 1 AS v FROM c", "SELECT a + 1 AS v FROM t", "rewriting", WRITTEN),
    "an import CTE": (
        "WITH src AS (SELECT * FROM t) SELECT a, sum(b) AS v FROM src GROUP BY a",
        "SELECT a, sum(b) AS v FROM t GROUP BY a",
        "rewriting",
        WRITTEN,
    ),
    "a final CTE": (
        "WITH final AS (SELECT a, sum(b) AS v FROM t GROUP BY a) SELECT * FROM final",
        "SELECT a, sum(b) AS v FROM t GROUP BY a",
        "rewriting",
        WRITTEN,
    ),
    "a table's name before a column": ("SELECT a, b FROM t", "SELECT t.a, t.b FROM t", "rewriting", WRITTEN),
    "quotes": ("SELECT a FROM t", "SELECT `a` FROM t", "rewriting", WRITTEN),
    "a star": ("SELECT * FROM u", "SELECT id, x, y FROM u", "rewriting", WRITTEN),
    "unions in brackets": (
        "SELECT a FROM t UNION ALL SELECT x FROM u",
        "(SELECT a FROM t) UNION ALL (SELECT x FROM u)",
        "rewriting",
        WRITTEN,
    ),
}

OTHER = {
    # What Spark may still prove
    "the alias of a LATERAL VIEW": (
        "SELECT e.v FROM t LATERAL VIEW explode(array(a, b)) e AS v",
        "SELECT g.v FROM t LATERAL VIEW explode(array(a, b)) g AS v",
        "rows",
        PROOF,
    ),
    "the alias of a sample": ("SELECT o.a FROM t TABLESAMPLE (5 ROWS) AS o", "SELECT x.a FROM t TABLESAMPLE (5 ROWS) AS x", "rows", PROOF),
    "the alias beside LIMIT": ("SELECT o.a FROM t o ORDER BY o.id LIMIT 3", "SELECT x.a FROM t x ORDER BY x.id LIMIT 3", "rows", PROOF),
    # Certain
    "a column at the end": ("SELECT a FROM t", "SELECT a, b + 1 AS c FROM t", "columns-added", "column 'c' added at the end"),
    "two columns": ("SELECT a FROM t", "SELECT a, b, s FROM t", "columns-added", "columns 'b', 's' added at the end"),
    "a column in the middle": ("SELECT a, s FROM t", "SELECT a, b, s FROM t", "columns-added", "column 'b' added"),
    "an aggregate": (
        "SELECT a, sum(b) AS v FROM t GROUP BY a",
        "SELECT a, sum(b) AS v, count(*) AS n FROM t GROUP BY a",
        "columns-added",
        "column 'n' added at the end",
    ),
    "no longer a column": ("SELECT a, b FROM t", "SELECT a FROM t", "breaking", "column 'b' removed"),
    "another name": ("SELECT a, b FROM t", "SELECT a, b AS c FROM t", "breaking", "column 'b' renamed to 'c'"),
    "another type": (
        "SELECT a, CAST(b AS INT) AS b FROM t",
        "SELECT a, CAST(b AS BIGINT) AS b FROM t",
        "breaking",
        "column 'b' is now bigint, and was int",
    ),
    "columns in another order": ("SELECT a, b FROM t", "SELECT b, a FROM t", "reordered", "its columns are in a different order"),
    "another expression": ("SELECT a, b FROM t", "SELECT a, b + 1 AS b FROM t", "rows", "column 'b' is computed differently"),
    "another case": ("SELECT a FROM t", "SELECT a AS A FROM t", "rows", "column 'a' is spelled 'A'"),
    "a condition": ("SELECT a FROM t", "SELECT a FROM t WHERE b = 1", "filter-narrowed", "WHERE also requires `b = 1`"),
    "another bound": (
        "SELECT a FROM t WHERE a > 1",
        "SELECT a FROM t WHERE a > 2",
        "filter-narrowed",
        "WHERE requires `a > 2` instead of `a > 1`",
    ),
    "no condition": ("SELECT a FROM t WHERE s = 'x'", "SELECT a FROM t", "filter-widened", "WHERE no longer requires `s = 'x'`"),
    "a value of IN": (
        "SELECT a FROM t WHERE s IN ('p', 'q')",
        "SELECT a FROM t WHERE s IN ('p', 'q', 'r')",
        "filter-widened",
        "WHERE requires `s IN ('p', 'q', 'r')` instead of `s IN ('p', 'q')`",
    ),
    "HAVING": (
        "SELECT a, sum(b) AS v FROM t GROUP BY a",
        "SELECT a, sum(b) AS v FROM t GROUP BY a HAVING sum(b) > 1",
        "filter-narrowed",
        "HAVING also requires `SUM(b) > 1`",
    ),
    "a column and a condition": (
        "SELECT a FROM t",
        "SELECT a, b FROM t WHERE b = 1",
        "filter-narrowed",
        "WHERE also requires `b = 1`; column 'b' added at the end",
    ),
    "a column removed and a condition": (
        "SELECT a, b FROM t",
        "SELECT a FROM t WHERE s = 'x'",
        "breaking",
        "column 'b' removed; WHERE also requires `s = 'x'`",
    ),
    # Not certain
    "another literal": ("SELECT a FROM t WHERE s = 'x'", "SELECT a FROM t WHERE s = 'y'", "rows", "WHERE was changed"),
    "a number that is a string": ("SELECT a FROM t WHERE a = 1", "SELECT a FROM t WHERE a = '1'", "rows", "WHERE was changed"),
    "OR for IN": ("SELECT a FROM t WHERE a = 1 OR a = 2", "SELECT a FROM t WHERE a IN (1, 2)", "rows", "WHERE was changed"),
    "NULL-safe": ("SELECT a FROM t WHERE a = b", "SELECT a FROM t WHERE a <=> b", "rows", "WHERE was changed"),
    "LEFT JOIN": ("SELECT t.a FROM t JOIN u USING (id)", "SELECT t.a FROM t LEFT JOIN u USING (id)", "rows", "a join was changed"),
    "USING and ON": ("SELECT t.a FROM t JOIN u USING (id)", f"SELECT t.a {TU}", "rows", "a join was changed"),
    "another join": (
        "SELECT t.a FROM t LEFT JOIN u ON t.id = u.id",
        "SELECT t.a FROM t LEFT JOIN u ON t.id = u.x",
        "rows",
        "a join was changed",
    ),
    "ON and WHERE of a LEFT JOIN": (
        "SELECT t.a FROM t LEFT JOIN u ON t.id = u.id WHERE u.x > 1",
        "SELECT t.a FROM t LEFT JOIN u ON t.id = u.id AND u.x > 1",
        "rows",
        "a join was changed, WHERE was changed",
    ),
    "DISTINCT": ("SELECT a FROM t", "SELECT DISTINCT a FROM t", "rows", "expressions inside were changed"),
    "GROUP BY": (
        "SELECT count(a) AS n FROM t GROUP BY b",
        "SELECT count(a) AS n FROM t GROUP BY s",
        "rows",
        "GROUP BY was changed",
    ),
    "a column of DISTINCT": (
        "SELECT DISTINCT a FROM t",
        "SELECT DISTINCT a, b FROM t",
        "rows",
        "the new columns affect its rows; column 'b' added at the end",
    ),
    "UNION": ("SELECT a FROM t UNION ALL SELECT x FROM u", "SELECT a FROM t UNION SELECT x FROM u", "rows", "the query as a whole"),
    "a frame": (
        "SELECT id, sum(a) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS v FROM t",
        "SELECT id, sum(a) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS v FROM t",
        "rows",
        "column 'v' is computed differently",
    ),
    "another function": ("SELECT first(a) AS v FROM t", "SELECT last(a) AS v FROM t", "rows", "column 'v' is computed differently"),
    "LIMIT": ("SELECT a FROM t", "SELECT a FROM t LIMIT 3", "rows", "LIMIT was changed"),
    "another table inside": (
        "SELECT a FROM t WHERE id IN (SELECT id FROM u)",
        "SELECT a FROM t WHERE id IN (SELECT x FROM u)",
        "rows",
        "WHERE was changed, expressions inside were changed",
    ),
    "names that change places": (
        "SELECT p.n, q.n AS o FROM (SELECT a AS n FROM t) p JOIN (SELECT b AS n FROM t) q ON p.n = q.n + 1",
        "SELECT q.n, p.n AS o FROM (SELECT a AS n FROM t) p JOIN (SELECT b AS n FROM t) q ON p.n = q.n + 1",
        "rows",
        "column 'n' is computed differently; column 'o' is computed differently",
    ),
    "columns of a star": (
        "SELECT *, a AS k FROM u JOIN t USING (id)",
        "SELECT *, b AS k FROM u JOIN t USING (id)",
        "rows",
        "column 'k' is computed differently",
    ),
}
