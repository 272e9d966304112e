"""The features that a history may have in addition to rows and layouts: each with queries that are sensitive to it, and steps that use it.

A feature is a change that was once overlooked: columns that move, a storage that others alter, names of another catalog, settings of the
session, positions of rows in files, timestamps beyond the range of some readers, views that bind by position, inner results that are kept,
text that is not valid UTF-8, rows that are deleted by their key; and what real projects are made of.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spark.history_idioms import IDIOMS
from spark.history_queries import Model
from unit.incremental.queries import Type


@dataclass(frozen=True, kw_only=True)
class CatalogView:
    """A view of the catalog that another writer creates. Its text names tables relative to the catalog and namespace in use."""

    name: str
    texts: tuple[str, ...]
    """The first at first, then others in turn; `%a` is a table."""
    columns: str = ""
    uses: str = "lake.raw"

    @property
    def full_name(self) -> str:
        return f"lake.raw.{self.name}"


@dataclass(frozen=True, kw_only=True)
class Feature:
    queries: Sequence[str]
    """`{%a}` and `{%b}` are two tables."""
    steps: Mapping[str, float] = field(default_factory=dict)
    """With weights."""
    views: Sequence[CatalogView] = ()
    columns: Mapping[str, Type] = field(default_factory=dict)
    """That every table needs."""


FEATURES: Mapping[str, Feature] = {
    "moves": Feature(
        queries=(
            "SELECT %listed FROM {%a} UNION ALL SELECT * FROM {%a}",
            "SELECT k, v FROM {%a} UNION ALL SELECT p1, p2 FROM (SELECT * FROM {%b}) AS t (%others)",
            "SELECT p1, p2 FROM {%a} AS t (%positions)",
            "WITH t (%positions) AS (SELECT * FROM {%a}) SELECT p1, count(*) AS n, max(p2) AS most FROM t GROUP BY p1",
            "SELECT concat_ws('|', *) AS line FROM {%a}",
            "SELECT k, to_json(struct(*)) AS line FROM {%a}",
            "SELECT x.k, to_json(struct(x.*)) AS line, y.v AS other FROM {%a} x JOIN {%b} y ON x.k = y.k",
            "SELECT k, hash(*) AS h, md5(concat_ws('|', x.*)) AS m FROM {%a} x",
            "SELECT k, CAST(max(struct(*)) AS STRING) AS most FROM {%a} GROUP BY k",
            "SELECT CAST(t AS STRING) AS line FROM {%a} AS t",
            "SELECT k, to_json(max(t)) AS most FROM {%a} AS t GROUP BY k",
            "SELECT * FROM {%a}",
            "SELECT x.k, y.* EXCEPT (k) FROM {%a} x JOIN {%b} y ON x.k = y.k",
        ),
        steps={"move_column": 6, "swap_names": 2, "replace_column": 1, "replace_table": 1, "swap_tables": 2},
    ),
    "storage": Feature(
        queries=(
            "SELECT k, v FROM {%a}",
            "SELECT k, sum(v) AS total, count(*) AS n, count(v) AS vs FROM {%a} GROUP BY k",
            "SELECT x.k, y.v, x.v AS other FROM {%a} x JOIN {%b} y ON x.k = y.k",
        ),
        steps={"swap_storage_names": 4, "drop_storage_column": 2, "move_storage_column": 2, "add_storage_column": 1},
    ),
    "catalogs": Feature(
        queries=(
            "SELECT k, v FROM {elsewhere}",
            "SELECT k, count(*) AS n FROM {full_names} GROUP BY k",
            "SELECT x.k, x.v, y.v AS other FROM {elsewhere} x JOIN {%a} y ON x.k = y.k",
            "SELECT k, v FROM {nested} WHERE v > 0",
            "SELECT k, v FROM {%a} EXCEPT SELECT k, v FROM {elsewhere}",
            "SELECT k, v FROM second.raw.a",
        ),
        steps={"elsewhere_append": 4, "elsewhere_delete": 2, "elsewhere_update": 1, "elsewhere_compact": 1, "replace_view": 1},
        views=(
            CatalogView(name="elsewhere", texts=("SELECT k, v FROM a", "SELECT k, v + 1 AS v FROM a"), uses="second.raw"),
            CatalogView(name="full_names", texts=("SELECT x.k, y.v FROM second.raw.a x JOIN lake.raw.a y ON x.k = y.k",)),
            CatalogView(name="nested", texts=("SELECT k, v FROM lake.raw.elsewhere", "SELECT k, 7 AS v FROM lake.raw.elsewhere")),
        ),
    ),
    "variables": Feature(
        queries=(
            "SELECT k, v FROM {%a} WHERE k = CAST('${cut}' AS INT)",
            "SELECT k, '${cut}' AS cut, count(*) AS n FROM {%a} GROUP BY k",
            "SELECT k, v FROM {%a} WHERE v >= ${cut}",
            "SELECT k, v FROM {%a} WHERE k >= bound",
            "SELECT k, v, system.session.bound AS bound FROM {%a}",
        ),
        steps={"set_cut": 4, "set_bound": 3},
    ),
    "metadata": Feature(
        queries=(
            "SELECT k, v, _file AS at FROM {%a}",
            "SELECT k, _pos AS at, regexp_extract(_file, '[^/]+$', 0) AS name FROM {%a}",
            "SELECT _spec_id AS spec, count(*) AS n FROM {%a} GROUP BY _spec_id",
            "SELECT k, to_json(_partition) AS part FROM {%a}",
            "SELECT count(DISTINCT _file) AS files FROM {%a}",
        ),
        steps={"compact": 6, "evolve_partitioning": 2, "compact_deletes": 1},
    ),
    "zones": Feature(
        queries=(
            "SELECT k, CAST(ts AS DATE) AS day FROM {%a}",
            "SELECT CAST(ts AS DATE) AS day, count(*) AS n, sum(v) AS total, count(v) AS vs FROM {%a} GROUP BY CAST(ts AS DATE)",
            "SELECT k, hour(ts) AS h, date_format(ts, 'yyyy-MM-dd HH') AS text FROM {%a}",
            "SELECT k, ts FROM {%a} WHERE ts >= '2026-01-01 12:00:00'",
            "SELECT k, v FROM {%a} TIMESTAMP AS OF '{now}' AS x",
            "SELECT x.k, x.v, y.v AS other FROM {%a} x JOIN {%a} TIMESTAMP AS OF '{now}' AS y ON x.k = y.k",
        ),
        steps={"set_zone": 6},
        columns={"ts": "timestamp"},
    ),
    "int96": Feature(
        queries=(
            "SELECT k, v, ts FROM {%a}",
            "SELECT ts, count(*) AS n FROM {%a} GROUP BY ts",
            "SELECT k, max(ts) AS last, min(ts) AS first FROM {%a} GROUP BY k",
            "SELECT x.k, x.ts FROM {%a} x JOIN {%b} y ON x.ts = y.ts",
        ),
        steps={"add_int96": 6, "delete": 3, "update": 3},
        columns={"ts": "timestamp"},
    ),
    "views": Feature(
        queries=(
            "SELECT p, q FROM {twice}",
            "SELECT * FROM {starred}",
            "SELECT k, v FROM {starred}",
            "SELECT p, count(*) AS n FROM {renamed} GROUP BY p",
            "SELECT x.p, y.v FROM {twice} x JOIN {starred} y ON x.p = y.k",
        ),
        steps={"replace_view": 3, "recreate_view": 2, "move_column": 3, "add_column": 2},
        views=(
            CatalogView(name="twice", columns="(p, q)", texts=("SELECT k, k FROM a", "SELECT x.v, y.v FROM a x JOIN a y ON x.k = y.k")),
            CatalogView(name="starred", texts=("SELECT * FROM a", "SELECT v AS k, k AS v FROM a")),
            CatalogView(name="renamed", columns="(p, q)", texts=("SELECT k, v FROM a", "SELECT v, k FROM a")),
        ),
    ),
    "doubles": Feature(
        queries=(
            "SELECT k, r FROM {%a}",
            "SELECT r, count(*) AS n FROM {%a} GROUP BY r",
            "SELECT DISTINCT r FROM {%a}",
            "SELECT k, max(r) AS most, min(r) AS least FROM {%a} GROUP BY k",
            "SELECT x.k, y.k AS other FROM {%a} x JOIN {%b} y ON x.r = y.r",
            "SELECT k, CAST(r AS STRING) AS text FROM {%a}",
            # Functions that distinguish 0.0 and -0.0, over what takes them for equal.
            "SELECT DISTINCT CAST(r AS STRING) AS text, n FROM (SELECT r, count(*) OVER (PARTITION BY r) AS n FROM {%a}) AS q",
            "SELECT CAST(r AS STRING) AS text, max(n) AS most FROM (SELECT r, count(*) OVER (PARTITION BY r) AS n FROM {%a}) AS q "
            "GROUP BY CAST(r AS STRING)",
            "SELECT CAST(r AS STRING) AS text, count(*) AS n FROM (SELECT k, r FROM {%a} EXCEPT SELECT k, r FROM {%b}) AS q "
            "GROUP BY CAST(r AS STRING)",
        ),
        steps={"touch": 2, "update": 3},
        columns={"r": "double"},
    ),
    "forms": Feature(
        queries=(
            "SELECT coalesce(k, 0) % 3 AS third, count(*) AS n, sum(v) AS total, count(v) AS vs FROM {%a} GROUP BY third",
            "SELECT * EXCEPT (note) FROM {%a}",
            "SELECT x.* EXCEPT (note), y.v AS other FROM {%a} x LEFT JOIN (SELECT k, v FROM {%b}) y USING (k)",
            "SELECT * FROM (SELECT v AS p, k FROM {%a}) x JOIN (SELECT v AS q, k FROM {%b}) y USING (k)",
            "SELECT * FROM (SELECT v AS p, k FROM {%a}) NATURAL JOIN (SELECT k, v AS q FROM {%b})",
            "SELECT /*+ BROADCAST(y) */ x.k, y.v FROM {%a} x JOIN {%b} y ON x.k = y.k",
            "SELECT k, v, rank() OVER w AS r, count(v) OVER w AS n FROM {%a} WINDOW w AS (PARTITION BY k ORDER BY v)",
            "SELECT x.k, t.twice, t.twice + x.v AS thrice FROM {%a} x, LATERAL (SELECT x.v * 2 AS twice) AS t",
            "SELECT x.k, t.e FROM {%a} x, LATERAL explode(array(x.v, 1)) AS t(e)",
            "SELECT x.k, t.w FROM {%a} x, LATERAL (SELECT v + 1 AS w FROM {%b} WHERE k = x.k) AS t",
            "SELECT x.k, count(t.v) AS n, max(t.v) AS most FROM {%a} x LEFT JOIN LATERAL (SELECT * FROM {%b} WHERE k = x.k AND v > x.v) AS t "
            "GROUP BY x.k",
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) "
            "SELECT n.i, count(x.v) AS vs FROM n LEFT JOIN {%a} x ON x.v = n.i GROUP BY n.i",
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 2 FROM n WHERE i < 6) SELECT x.k, i FROM {%a} x JOIN n ON n.i <= x.v",
            "SELECT k, explode(sequence(1, coalesce(abs(v) % 4, 0) + 1)) AS e FROM {%a}",
            "SELECT v, stack(2, 'k', CAST(k AS STRING), 'v', CAST(v AS STRING)) AS (name, value) FROM {%a}",
            "SELECT x.k, x.v FROM {%a} x WHERE x.v = 1 OR EXISTS (SELECT 1 FROM {%b} y WHERE y.k = x.k)",
            "SELECT k, v FROM {%a} WHERE v > 1 OR k IN (SELECT v FROM {%b})",
            "SELECT x.k, x.v, EXISTS (SELECT 1 FROM {%b} y WHERE y.k = x.k AND y.v > 0) AS has FROM {%a} x",
            "SELECT k, v + 1 AS next, next * 2 AS twice, twice + next AS both FROM {%a}",
            "SELECT k, sum(v) AS total, count(v) AS vs, count(*) AS n, sum(v) / nullif(count(v), 0) AS mean, CAST(sum(v) AS STRING) AS text "
            "FROM {%a} GROUP BY k",
            "SELECT count(*) AS n, sum(v) AS total, count(v) AS vs, sum(v) / nullif(count(*), 0) AS mean FROM {%a}",
            "SELECT k, sum(v) AS total, sum(sum(v)) OVER (PARTITION BY k % 2) AS of_all FROM {%a} GROUP BY k",
            "SELECT k, sort_array(collect_set(v)) AS vs, approx_count_distinct(v) AS about FROM {%a} GROUP BY k",
            "SELECT k, listagg(CAST(v AS STRING), ',') WITHIN GROUP (ORDER BY v) AS text FROM {%a} GROUP BY k",
            "SELECT x.k, y.v FROM {%a} x JOIN {%b} y ON x.k = y.k AND y.v BETWEEN x.v - 1 AND x.v",
            "SELECT k, transform(array(v, k), e -> coalesce(e, 0) + 1) AS es, filter(array(v, 1), e -> e > 0) AS fs FROM {%a}",
            "SELECT k, decode(v, 1, 'one', 2, 'two', 'more') AS word, split(concat(k, '-', v), '-')[1] AS part FROM {%a}",
        ),
        steps={"update": 3, "delete": 3},
    ),
    "layers": Feature(
        queries=(
            "SELECT v, count(*) AS n, max(k) AS most FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS at FROM {%a}) "
            "WHERE at = 1 GROUP BY v",
            "SELECT y.k, y.v, t.v AS newest FROM {%b} y LEFT JOIN (SELECT k, v FROM (SELECT k, v, row_number() OVER (PARTITION BY k "
            "ORDER BY v DESC NULLS LAST) AS at FROM {%a}) WHERE at = 1) t ON y.k = t.k",
            "SELECT k, avg(v) AS mean FROM {%a} GROUP BY k HAVING count(*) > 1",
            "SELECT k, sum(v) / count(*) AS share FROM {%a} GROUP BY k",
            "SELECT k, bool_or(v > 1) AS some, count_if(v > 0) AS positive FROM {%a} GROUP BY k HAVING max(v) > 0",
            "SELECT x.k, t.n, x.v FROM {%b} x JOIN (SELECT k, count(*) AS n FROM {%a} GROUP BY k HAVING sum(v) > 1) t ON x.k = t.k",
            "SELECT m, count(*) AS n, sum(s) AS total FROM (SELECT k, max(v) AS m, sum(v) AS s FROM {%a} GROUP BY k) GROUP BY m",
            "SELECT sum(v) AS total, avg(v) AS mean FROM {%a} WHERE v > 0",
            "SELECT count(*) AS groups, max(n) AS most FROM (SELECT k, count(*) AS n FROM {%a} GROUP BY k)",
            "SELECT count(DISTINCT v) AS vs, count(*) AS n FROM {%a}",
            "SELECT k, n, rank() OVER (ORDER BY n DESC, k) AS place FROM (SELECT k, count(*) AS n FROM {%a} GROUP BY k)",
            "SELECT k, sum(v) AS s, count(*) AS n FROM {%a} GROUP BY k ORDER BY n DESC, k LIMIT 3",
            "SELECT x.k, x.v FROM {%a} x JOIN {%b} y ON x.k = y.k ORDER BY x.k, x.v LIMIT 5",
            "SELECT k, v FROM {%a} ORDER BY v DESC, k LIMIT 4",
            "SELECT v, k FROM {%a} WHERE v > 0 ORDER BY k NULLS LAST, v LIMIT 3",
            "SELECT k, v FROM {%a} WHERE v > (SELECT avg(v) FROM {%b})",
            "SELECT k, sum(v) / nullif((SELECT sum(v) FROM {%a}), 0) AS share FROM {%a} GROUP BY k",
            "SELECT 'a' AS part, k, avg(v) AS mean FROM {%a} GROUP BY k UNION ALL SELECT 'b', k, avg(v) FROM {%b} GROUP BY k",
            "SELECT k, v, avg(v) AS mean FROM {%a} GROUP BY ROLLUP (k, v) HAVING count(*) > 1",
            "SELECT y.k, y.v FROM {%b} y WHERE y.v > 0 AND y.v >= (SELECT avg(a.v) FROM {%a} a WHERE a.k = y.k)",
            "SELECT y.k, y.v FROM {%b} y WHERE y.v > 0 AND NOT EXISTS (SELECT 1 FROM {%a} a WHERE a.k = y.k)",
            "SELECT y.k, t.s FROM {%b} y LEFT JOIN (SELECT k, sum(v) AS s FROM {%a} GROUP BY k) t ON t.k = y.k WHERE y.v > 0",
            "SELECT sum(x.v) / 7 AS s FROM {%a} x JOIN {%b} y ON x.k = y.k WHERE y.v > 0 AND x.v < (SELECT 2 * avg(a.v) FROM {%a} a WHERE a.k = y.k)",
            "SELECT n, count(*) AS ks FROM (SELECT y.k, count(a.v) AS n FROM {%b} y LEFT JOIN {%a} a ON a.k = y.k GROUP BY y.k) GROUP BY n",
            "SELECT y.k, sum(a.v) AS s, count(a.v) AS n FROM {%b} y LEFT JOIN {%a} a ON a.k = y.k AND a.v > 0 GROUP BY y.k",
            # Rows that cannot be compared: computed in full from an auxiliary view that follows the change.
            "SELECT array(CAST(max(t) AS DOUBLE)) AS most FROM (SELECT k, sum(v) AS t FROM {%a} GROUP BY k) AS q",
        ),
        steps={"append": 3, "update": 3, "delete": 3, "merge": 2},
    ),
    "text": Feature(
        queries=(
            "SELECT k, x FROM {%a}",
            "SELECT x, count(*) AS n, sum(v) AS total, count(v) AS vs FROM {%a} GROUP BY x",
            "SELECT DISTINCT x FROM {%a}",
            "SELECT k, max(x) AS most, min(x) AS least FROM {%a} GROUP BY k",
            "SELECT y.k, y.x FROM {%a} x JOIN {%b} y ON x.x = y.x",
            "SELECT k, v FROM {%a} WHERE x > 'x'",
            "SELECT k, hex(CAST(x AS BINARY)) AS bytes FROM {%a}",
            "SELECT k, x FROM {%a} EXCEPT SELECT k, x FROM {%b}",
            "SELECT k, v, x FROM (SELECT *, row_number() OVER (PARTITION BY x ORDER BY v, k) AS at FROM {%a}) WHERE at = 1",
        ),
        steps={"append": 2, "update": 3, "delete": 3, "compact": 2},
        columns={"x": "text"},
    ),
    "keys": Feature(
        queries=(
            "SELECT k, v FROM {%a} WHERE v > 0",
            "SELECT k, sum(v) AS total, count(v) AS vs, count(*) AS n FROM {%a} GROUP BY k",
            "SELECT v, count(*) AS n, max(k) AS most FROM {%a} GROUP BY v",
            "SELECT x.k, x.v, y.v AS other FROM {%a} x JOIN {%b} y ON x.k = y.k",
            "SELECT y.k, y.v, x.v AS other FROM {%b} y LEFT JOIN {%a} x ON x.k = y.k",
            "SELECT k, v FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS at FROM {%a}) WHERE at = 1",
            "SELECT y.k, y.v FROM {%b} y WHERE NOT EXISTS (SELECT 1 FROM {%a} x WHERE x.k = y.k)",
            "SELECT avg(v) AS mean, count(DISTINCT k) AS ks FROM {%a}",
            "SELECT note, k FROM {%a}",
        ),
        steps={"write_by_key": 10, "append": 2, "delete": 2, "compact": 2, "compact_deletes": 1},
    ),
    "idioms": Feature(
        queries=IDIOMS,
        steps={"append": 3, "update": 4, "delete": 3, "merge": 2},
        columns={"day": "date", "s": "string", "f": "boolean", "d": "decimal"},
    ),
}
SESSION_STEPS = ("set_cut", "set_bound", "set_zone")
VIEW_STEPS = ("replace_view", "recreate_view")
STORAGE_STEPS = (
    "swap_storage_names",
    "drop_storage_column",
    "move_storage_column",
    "add_storage_column",
    "compact_storage",
    "expire_storage",
    "compact_storage_deletes",
)
ELSEWHERE = "elsewhere_"
"""Before the name of a step: on the table of the same name in the second catalog."""
SINCE_4 = (" EXCEPT (", "bound")
"""What Spark 3.5 has not: `* EXCEPT` and variables."""
UNSTEADY = ("bound", "${cut}", "_partition")
"""What makes a query's rows depend on more than snapshots: such an MV is never fresh, and is refreshed by every run."""


def models(chance: random.Random, tables: Mapping[str, Mapping[str, Type]], features: Sequence[str]) -> list[Model]:
    """Some MVs of each feature, and one that reads another MV of them."""
    made: list[Model] = []
    for name in features:
        for at, query in enumerate(chance.sample(FEATURES[name].queries, 3)):
            one, other = chance.sample(list(tables), 2)
            text = query.replace("%a", one).replace("%b", other)
            text = text.replace("%positions", _positions(tables[one])).replace("%others", _positions(tables[other]))
            text = text.replace("%listed", ", ".join([*tables[one], "note"]))
            made.append(
                Model(name=f"{name}_{at}", query=text, config=chance.choice(("", "", _COPY_ON_WRITE, "storage: {format: metadata-file}")))
            )
    return made


_COPY_ON_WRITE = "table_properties: {write.delete.mode: copy-on-write, write.update.mode: copy-on-write, write.merge.mode: copy-on-write}"


def _positions(columns: Mapping[str, Type]) -> str:
    """Names for all columns of a table as it is made, by position: `note` is the last."""
    return ", ".join(f"p{at}" for at in range(1, len(columns) + 2))
