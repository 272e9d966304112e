"""The sample queries of docs/incremental-table.md: at least one for each operator, over two small tables; and relations as short formulas.

The examples in the docstrings of this package use both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from mvbuild.dataclass import dataclass
from mvbuild.incremental.algebra import Aggregate, Filter, Item, Join, Project, Ref, Relation, Scan, Sessions
from mvbuild.incremental.building import LeafColumns
from mvbuild.incremental.clock import with_calls
from mvbuild.incremental.from_clause import MARKER
from mvbuild.incremental.hypothetical import guessed_types
from mvbuild.incremental.rewrite import StrategyInput
from mvbuild.incremental.shape import Shape, plain_name, shape_of
from mvbuild.ports.states import Partition

TABLES = ("orders", "customers")
TYPES: tuple[Mapping[str, Any], ...] = (
    {
        "id": "long",
        "customer_id": "long",
        "amount": "decimal(10,2)",
        "weight": "double",
        "status": "string",
        "order_date": "date",
        "paid_at": "timestamptz",
        "items": {"type": "list", "element": "string"},
        "labels": {"type": "map", "key": "string", "value": "string"},
    },
    {"customer_id": "long", "country": "string"},
)
COLUMNS = (LeafColumns.of_iceberg(TYPES[0], frozenset({"id"})), LeafColumns.of_iceberg(TYPES[1]))


@dataclass(frozen=True, slots=True)
class Sample:
    """`sql` names the tables in braces."""

    operator: str
    sql: str
    partition_by: tuple[Partition, ...] = ()

    @property
    def text(self) -> str:
        return self.sql.format(**{name: name for name in TABLES})

    @property
    def shape(self) -> Shape:
        """Raises Refused for a query that the algebra cannot express."""
        names = {name: f"`{MARKER}{at}` AS {name}" for at, name in enumerate(TABLES)}
        return shape_of(with_calls(self.sql.format(**names)), COLUMNS, None)


def shape(sql: str) -> Shape:
    """The shape of a sample query, with its tables in braces.

    >>> formula(shape("SELECT customer_id, count(*) AS n FROM {orders} WHERE amount > 0 GROUP BY customer_id").root)
    'aggregate[customer_id, COUNT(*)](filter[amount > 0](orders))'
    """
    return Sample("", sql).shape


def case(sql: str, *, removed: bool = False, partition_by: tuple[Partition, ...] = (), has_children: bool = True) -> StrategyInput:
    """The input of a strategy for a sample query: rows were added to `orders` and, if `removed`, also removed."""
    made = shape(sql)
    minus = frozenset({0}) if removed else frozenset()
    types = guessed_types(made)
    return StrategyInput(shape=made, plus=frozenset({0}), minus=minus, types=types, partition_by=partition_by, has_children=has_children)


def formula(relation: Relation) -> str:
    """A relation as a short text, `operator[parameters](inputs)`, without projections that only pick columns."""
    if isinstance(relation, Scan):
        name = TABLES[relation.leaf] if relation.leaf in range(len(TABLES)) else "storage"
        return name if relation.version == "new" else f"{name}.{relation.version}"
    if isinstance(relation, Ref):
        return relation.name
    if isinstance(relation, Project) and all(isinstance(item.expression, exp.Column) for item in relation.items):
        return formula(relation.child)
    inputs = ", ".join(map(formula, relation.children))
    return f"{_operator(relation)}({inputs})"


def _operator(relation: Relation) -> str:
    name = f"{relation.kind} join" if isinstance(relation, Join) else type(relation).__name__.lower()
    if isinstance(relation, Filter):
        return f"{name}[{_text(relation.predicate)}]"
    if isinstance(relation, Join):
        return f"{name}[{_text(relation.on)}]" if relation.on is not None else name
    items: tuple[Item, ...] = ()
    if isinstance(relation, Project):
        items = relation.items
    elif isinstance(relation, Aggregate):
        items = (*relation.keys, *relation.values)
    elif isinstance(relation, Sessions):
        items = (*relation.keys, relation.session, *relation.values)
    return f"{name}[{', '.join(_text(item.expression) for item in items)}]" if items else name


def _text(expression: exp.Expr) -> str:
    plain = expression.transform(lambda node: exp.column(plain_name(node.name)) if isinstance(node, exp.Column) else node)
    return plain.sql("spark").replace(" IS NOT DISTINCT FROM ", " <=> ")


_BY_CUSTOMER = "GROUP BY customer_id"
_JOINED = "{orders} JOIN {customers} USING (customer_id)"

ONE_TABLE = (
    Sample("projection, `WHERE`", "SELECT id, upper(status) AS s FROM {orders} WHERE amount > 0"),
    Sample("`LATERAL VIEW`", "SELECT id, item FROM {orders} LATERAL VIEW explode(items) AS item"),
    Sample(
        "`LATERAL` with a table",
        "SELECT country, amount FROM {customers}, LATERAL (SELECT amount FROM {orders} WHERE customer_id = customers.customer_id)",
    ),
    Sample("a generator in `SELECT`", "SELECT id, explode(items) AS item FROM {orders}"),
    Sample("`DISTINCT`", "SELECT DISTINCT status FROM {orders}"),
    Sample("`GROUP BY`: `count(*)`", f"SELECT customer_id, count(*) AS n FROM {{orders}} {_BY_CUSTOMER}"),
    Sample("`sum` alone", f"SELECT customer_id, sum(amount) AS s FROM {{orders}} {_BY_CUSTOMER}"),
    Sample(
        "`sum` with its counts", f"SELECT customer_id, sum(amount) AS s, count(amount) AS c, count(*) AS n FROM {{orders}} {_BY_CUSTOMER}"
    ),
    Sample("`min`, `max`", f"SELECT customer_id, min(amount) AS low, max(amount) AS high, count(*) AS n FROM {{orders}} {_BY_CUSTOMER}"),
    Sample("`avg` alone", f"SELECT customer_id, avg(amount) AS a FROM {{orders}} {_BY_CUSTOMER}"),
    Sample(
        "`avg` with `sum` and counts",
        f"SELECT customer_id, avg(amount) AS a, sum(amount) AS s, count(amount) AS c, count(*) AS n FROM {{orders}} {_BY_CUSTOMER}",
    ),
    Sample("`sum` of floats", f"SELECT customer_id, sum(weight) AS s, count(weight) AS c, count(*) AS n FROM {{orders}} {_BY_CUSTOMER}"),
    Sample("`count(DISTINCT x)`", f"SELECT customer_id, count(DISTINCT status) AS n FROM {{orders}} {_BY_CUSTOMER}"),
    Sample("an expression of aggregates", f"SELECT customer_id, sum(amount) / count(*) AS a FROM {{orders}} {_BY_CUSTOMER}"),
    Sample(
        "an expression of aggregates that are selected too",
        f"SELECT customer_id, sum(amount) AS s, count(amount) AS c, count(*) AS n, sum(amount) / nullif(count(*), 0) AS a "
        f"FROM {{orders}} {_BY_CUSTOMER}",
    ),
    Sample("`HAVING`", f"SELECT customer_id, count(*) AS n FROM {{orders}} {_BY_CUSTOMER} HAVING count(*) > 1"),
    Sample("`GROUP BY` a column that is not selected", f"SELECT count(*) AS n FROM {{orders}} {_BY_CUSTOMER}"),
    Sample(
        "`GROUP BY`, the storage partitioned by a key",
        "SELECT order_date, min(amount) AS low FROM {orders} GROUP BY order_date",
        (Partition(column="order_date", transform="month"),),
    ),
    Sample("an aggregate without `GROUP BY`", "SELECT sum(amount) AS s, count(amount) AS c, count(*) AS n FROM {orders}"),
    Sample("`max` without `GROUP BY`", "SELECT max(amount) AS high FROM {orders}"),
    Sample("`collect_list`", f"SELECT customer_id, collect_list(status) AS l FROM {{orders}} {_BY_CUSTOMER}"),
    Sample(
        "other aggregates: `mode`, `listagg`, `approx_count_distinct`",
        f"SELECT customer_id, mode(status) AS m, approx_count_distinct(status) AS n FROM {{orders}} {_BY_CUSTOMER}",
    ),
    Sample(
        "`rank` with `PARTITION BY`",
        "SELECT id, customer_id, rank() OVER (PARTITION BY customer_id ORDER BY amount) AS r FROM {orders}",
    ),
    Sample(
        "`row_number` with `PARTITION BY`",
        "SELECT id, customer_id, row_number() OVER (PARTITION BY customer_id ORDER BY amount) AS r FROM {orders}",
    ),
    Sample(
        "`PARTITION BY` an expression",
        "SELECT id, sum(amount) OVER (PARTITION BY date_trunc('month', order_date)) AS s FROM {orders}",
    ),
    Sample(
        "windows by different keys",
        "SELECT id, sum(amount) OVER (PARTITION BY customer_id) AS s, count(*) OVER (PARTITION BY status) AS n FROM {orders}",
    ),
    Sample("a window without `PARTITION BY`", "SELECT id, rank() OVER (ORDER BY amount) AS r FROM {orders}"),
    Sample(
        "the first of each: `row_number() = 1`",
        "SELECT id, customer_id FROM (SELECT id, customer_id, row_number() OVER (PARTITION BY customer_id ORDER BY amount) AS r "
        "FROM {orders}) WHERE r = 1",
    ),
    Sample("`LIMIT`", "SELECT id FROM {orders} ORDER BY amount LIMIT 10"),
    Sample("`ORDER BY` alone", "SELECT id FROM {orders} ORDER BY amount"),
    Sample("`ROLLUP`, `CUBE`, `GROUPING SETS`", "SELECT customer_id, count(*) AS n FROM {orders} GROUP BY ROLLUP (customer_id)"),
    Sample(
        "`ROLLUP`, `CUBE`, `GROUPING SETS` with `grouping_id()`",
        "SELECT customer_id, grouping_id() AS g, count(*) AS n FROM {orders} GROUP BY ROLLUP (customer_id)",
    ),
    Sample(
        "`ROLLUP`, `CUBE`, `GROUPING SETS` of an expression",
        "SELECT month(order_date) AS m, status, count(*) AS n FROM {orders} GROUP BY ROLLUP (month(order_date), status)",
    ),
    Sample("`PIVOT`", "SELECT * FROM (SELECT customer_id, status, amount FROM {orders}) PIVOT (sum(amount) FOR status IN ('new', 'paid'))"),
    Sample(
        "windows of time",
        "SELECT window(paid_at, '1 hour').start AS hour, count(*) AS n FROM {orders} GROUP BY window(paid_at, '1 hour')",
    ),
    Sample(
        "sessions: `session_window`",
        "SELECT customer_id, session_window(paid_at, '30 minutes').start AS begun, count(*) AS n FROM {orders} "
        "GROUP BY customer_id, session_window(paid_at, '30 minutes')",
    ),
    Sample(
        "`UNPIVOT`",
        "SELECT id, kind, number FROM (SELECT id, customer_id, amount FROM {orders}) UNPIVOT (number FOR kind IN (customer_id, amount))",
    ),
    Sample("a join with `VALUES`", "SELECT id, label FROM {orders} JOIN (VALUES ('open', 'Open')) AS v(status, label) USING (status)"),
    Sample("the last day", "SELECT id, amount FROM {orders} WHERE order_date = (SELECT max(order_date) FROM {orders})"),
    Sample("the day, in a filter", "SELECT id, order_date FROM {orders} WHERE order_date >= current_date() - 30"),
    Sample("the exact time, or a random number", "SELECT id, rand() AS r FROM {orders}"),
    Sample("a column of type map", "SELECT id, labels FROM {orders}"),
)
"""One table, which changes completely."""

TWO_TABLES = (
    Sample("inner join", f"SELECT id, country FROM {_JOINED}"),
    Sample(
        "`GROUP BY` over an inner join",
        f"SELECT country, sum(amount) AS s, count(amount) AS c, count(*) AS n FROM {_JOINED} GROUP BY country",
    ),
    Sample("`LEFT JOIN`", "SELECT id, country FROM {orders} LEFT JOIN {customers} USING (customer_id)"),
    Sample(
        "`GROUP BY` over a `LEFT JOIN`",
        "SELECT country, count(*) AS n FROM {orders} LEFT JOIN {customers} USING (customer_id) GROUP BY country",
    ),
    Sample(
        "`GROUP BY` over a `RIGHT JOIN`, values of its left side",
        "SELECT country, count(id) AS n FROM {orders} RIGHT JOIN {customers} USING (customer_id) GROUP BY country",
    ),
    Sample("`RIGHT JOIN`", "SELECT id, country FROM {orders} RIGHT JOIN {customers} USING (customer_id)"),
    Sample(
        "`FULL JOIN`",
        "SELECT id, country, coalesce(orders.customer_id, customers.customer_id) AS c "
        "FROM {orders} FULL JOIN {customers} ON orders.customer_id = customers.customer_id",
    ),
    Sample("`CROSS JOIN`", "SELECT id, country FROM {orders} CROSS JOIN {customers}"),
    Sample("join by an inequality", "SELECT id, country FROM {orders} JOIN {customers} ON orders.customer_id < customers.customer_id"),
    Sample("`IN`, `EXISTS`, `LEFT SEMI JOIN`", "SELECT id FROM {orders} WHERE customer_id IN (SELECT customer_id FROM {customers})"),
    Sample(
        "`IN` with several columns",
        "SELECT id FROM {orders} WHERE (customer_id, status) IN (SELECT customer_id, country FROM {customers})",
    ),
    Sample(
        "`IN` in a `CASE`",
        "SELECT id, CASE WHEN customer_id IN (SELECT customer_id FROM {customers}) THEN 'known' ELSE 'new' END AS c FROM {orders}",
    ),
    Sample(
        "`NOT EXISTS`, `LEFT ANTI JOIN`",
        "SELECT id FROM {orders} WHERE NOT EXISTS (SELECT 1 FROM {customers} WHERE customers.customer_id = orders.customer_id)",
    ),
    Sample(
        "`EXISTS` as a value, `EXISTS` or `IN` in `OR`",
        "SELECT id, EXISTS (SELECT 1 FROM {customers} WHERE customers.customer_id = orders.customer_id) AS known FROM {orders}",
    ),
    Sample("`NOT IN`", "SELECT id FROM {orders} WHERE customer_id NOT IN (SELECT customer_id FROM {customers})"),
    Sample("`UNION ALL`", "SELECT customer_id FROM {orders} UNION ALL SELECT customer_id FROM {customers}"),
    Sample("`UNION`", "SELECT customer_id FROM {orders} UNION SELECT customer_id FROM {customers}"),
    Sample("`INTERSECT`", "SELECT customer_id FROM {orders} INTERSECT SELECT customer_id FROM {customers}"),
    Sample("`EXCEPT`", "SELECT customer_id FROM {orders} EXCEPT SELECT customer_id FROM {customers}"),
    Sample("equal to a scalar subquery", "SELECT id FROM {orders} WHERE customer_id = (SELECT max(customer_id) FROM {customers})"),
    Sample("scalar subquery", "SELECT id FROM {orders} WHERE customer_id > (SELECT max(customer_id) FROM {customers})"),
    Sample(
        "correlated scalar subquery",
        "SELECT id FROM {orders} WHERE status = (SELECT max(country) FROM {customers} WHERE customers.customer_id = orders.customer_id)",
    ),
    Sample(
        "join with an aggregate",
        "SELECT id, n FROM {orders} "
        "JOIN (SELECT customer_id, count(*) AS n FROM {customers} GROUP BY customer_id) AS c USING (customer_id)",
    ),
    Sample(
        "join with an aggregate of everything",
        "SELECT orders.id FROM {orders} JOIN (SELECT max(customer_id) AS id FROM {customers}) AS newest ON orders.customer_id = newest.id",
    ),
)
"""A left and a right table, one of which changes."""
