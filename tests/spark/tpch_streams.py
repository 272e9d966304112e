"""scale factor + round + fraction -> the Spark SQL statements of a refresh stream over TPC-H's orders and lineitem; and TPC-H's own queries.

Every value is a hash of a row's key, the seed, the round and the column's name: statements are a few hundred bytes at any scale, need nothing
from the driver, and the same ones change the same rows. Whether rows are rewritten or marked as deleted is up to the tables' properties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import tokenize
from sqlglot.tokens import TokenType

from spark.draws import Draw, number

LINEITEM_UPDATES = ("l_quantity", "l_shipdate", "l_suppkey")
ORDERS_UPDATES = ("o_orderstatus", "o_totalprice", "o_custkey")
UPDATES = (*LINEITEM_UPDATES, *ORDERS_UPDATES)
NEW_KEYS = 10**9
"""A round has the order keys from (round + 1) * 10**9 on for itself."""
_ENDS = (TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.LIMIT)


def second_set(sql: str) -> str:
    """The query without its outermost ORDER BY and LIMIT; all before them is the user's text."""
    depth = 0
    for token in tokenize(sql, read="spark"):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth == 0 and token.token_type in _ENDS:
            return sql[: token.start].rstrip() + "\n"
    return sql


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshStreams:
    """Rounds are numbered from 0. A fraction is of the rows that the table has at its scale, or has at the time of a delete or update."""

    scale: float
    namespace: str = "lake.main"
    seed: int = 1

    def inserts(self, round: int, fraction: float) -> tuple[str, ...]:  # noqa: A002
        """New orders, 1 to 7 lines each; one in ten for a customer that TPC-H would give no order."""
        lines = self._new_lines(round, max(1, int(1_500_000 * self.scale * fraction)))
        return f"INSERT INTO {self.namespace}.lineitem BY NAME {_LINEITEM.format(lines=lines)}", (
            f"INSERT INTO {self.namespace}.orders BY NAME {_ORDERS.format(lines=lines)}"
        )

    def deletes(self, round: int, fraction: float, *, clustered: bool = False) -> tuple[str, ...]:  # noqa: A002
        """Orders with their lines; of a random range of keys if `clustered`, so that few files are touched."""
        return tuple(
            f"DELETE FROM {self.namespace}.{table} WHERE {self._chosen('deleted', (key,), round, fraction, clustered)}"
            for table, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey"))
        )

    def updates(
        self,
        round: int,  # noqa: A002
        fraction: float,
        *,
        clustered: bool = False,
        columns: Sequence[str] = UPDATES,
    ) -> tuple[str, ...]:
        """A fraction of the rows of lineitem and one of orders, each changed in one of the columns."""
        tables = {"lineitem": (LINEITEM_UPDATES, ("l_orderkey", "l_linenumber")), "orders": (ORDERS_UPDATES, ("o_orderkey",))}
        statements = []
        for table, (changeable, keys) in tables.items():
            draw = Draw(self.seed, round, keys)
            changes = {name: value for name, value in self._changes(draw).items() if name in changeable and name in columns}
            if changes:
                where = self._chosen("updated", keys, round, fraction, clustered)
                statements.append(f"UPDATE {self.namespace}.{table} SET {draw.one_changed(changes)} WHERE {where}")
        return tuple(statements)

    def all_kinds(self, round: int, fraction: float, *, clustered: bool = False) -> tuple[str, ...]:  # noqa: A002
        """A round of the three of them."""
        changes = self.updates(round, fraction, clustered=clustered), self.deletes(round, fraction, clustered=clustered)
        return (*self.inserts(round, fraction), *changes[0], *changes[1])

    def _chosen(self, done: str, keys: tuple[str, ...], round: int, fraction: float, clustered: bool) -> str:  # noqa: A002
        """The WHERE clause; `keys` begins with the order key."""
        if not clustered:
            return Draw(self.seed, round, keys).happens(fraction, done)
        keyspace = int(6_000_000 * self.scale)  # of each 32 keys TPC-H uses 8
        width = max(32, int(keyspace * fraction))
        begin = number(self.seed, round, *done.encode()) % max(1, keyspace - width)
        return f"{keys[0]} >= {begin} AND {keys[0]} < {begin + width}"

    def _changes(self, draw: Draw) -> dict[str, str]:
        return {
            "l_quantity": f"CAST(1 + {draw.below(50, 'quantity')} AS DECIMAL(15, 2))",
            "l_shipdate": f"date_add(l_shipdate, CAST({draw.below(61, 'days')} - 30 AS INT))",
            "l_suppkey": _supplier("l_partkey", draw.below(4, "supplier"), self._suppliers),
            "o_orderstatus": f"element_at(array('F', 'O', 'P'), {draw.one_of(3, 'status')})",
            "o_totalprice": draw.cents(50_000_000, "price", 15),
            "o_custkey": f"1 + {draw.below(self._customers, 'customer')}",
        }

    @property
    def _suppliers(self) -> int:
        return max(1, int(10_000 * self.scale))

    @property
    def _customers(self) -> int:
        return max(3, int(150_000 * self.scale))

    def _new_lines(self, round: int, orders: int) -> str:  # noqa: A002
        order, line = Draw(self.seed, round, ("orderkey",)), Draw(self.seed, round, ("orderkey", "linenumber"))
        first = (round + 1) * NEW_KEYS
        return _LINES.format(
            keys=f"range({first}, {first + orders}, 1, {1 if orders < 200_000 else 4})",
            custkey=_customer(order, self._customers),
            orderdate=f"date_add(DATE '1992-01-01', CAST({order.below(2406, 'orderdate')} AS INT))",
            lines=f"CAST(1 + {order.below(7, 'lines')} AS INT)",
            partkey=f"1 + {line.below(max(1, int(200_000 * self.scale)), 'part')}",
            suppkey=_supplier("partkey", line.below(4, "supplier"), self._suppliers),
            quantity=f"1 + {line.below(50, 'quantity')}",
            discount=line.below(11, "discount"),
            tax=line.below(9, "tax"),
            ship=f"1 + {line.below(121, 'ship')}",
            commit=f"30 + {line.below(61, 'commit')}",
            receipt=f"1 + {line.below(30, 'receipt')}",
            returned=line.one_of(2, "returned"),
            instruct=line.one_of(4, "instruct"),
            mode=line.one_of(7, "mode"),
            word=line.one_of(6, "word"),
            priority=order.one_of(5, "priority"),
            clerk=f"1 + {order.below(max(1, int(1000 * self.scale)), 'clerk')}",
            comment=order.one_of(6, "comment"),
            special=order.below(20, "special"),
        )


def _supplier(part: str, choice: str, suppliers: int) -> str:
    """One of the four suppliers that partsupp has of a part."""
    return f"pmod({part} + {choice} * ({suppliers // 4} + ({part} - 1) DIV {suppliers}), {suppliers}L) + 1"


def _customer(order: Draw, customers: int) -> str:
    """In TPC-H the customers whose key 3 divides have no orders."""
    key = order.below(customers, "customer")
    return f"CASE WHEN {order.below(10, 'any customer')} = 0 OR {key} % 3 <> 2 THEN {key} + 1 ELSE {key} END"


_LINES = """(
SELECT *, CASE WHEN receiptdate > DATE '1995-06-17' THEN 'N' ELSE element_at(array('A', 'R'), {returned}) END AS returnflag,
  CASE WHEN shipdate > DATE '1995-06-17' THEN 'O' ELSE 'F' END AS linestatus,
  quantity * (90000 + (partkey DIV 10) % 20001 + 100 * (partkey % 1000)) AS cents,
  element_at(array('DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'), {instruct}) AS shipinstruct,
  element_at(array('REG AIR', 'AIR', 'RAIL', 'SHIP', 'TRUCK', 'MAIL', 'FOB'), {mode}) AS shipmode,
  concat(element_at(array('carefully', 'quickly', 'blithely', 'furiously', 'slyly', 'even'), {word}), ' final deposits') AS comment,
  element_at(array('1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'), {priority}) AS orderpriority,
  concat('Clerk#', lpad(CAST({clerk} AS STRING), 9, '0')) AS clerk,
  concat(CASE WHEN {special} = 0 THEN 'special packages wake: ' ELSE '' END,
    element_at(array('ironic requests', 'bold accounts', 'regular ideas', 'pending requests', 'express theodolites', 'silent foxes'), {comment}))
    AS ordercomment
FROM (
  SELECT *, date_add(orderdate, CAST({commit} AS INT)) AS commitdate, date_add(shipdate, CAST({receipt} AS INT)) AS receiptdate,
    {suppkey} AS suppkey
  FROM (
    SELECT *, date_add(orderdate, CAST({ship} AS INT)) AS shipdate, {partkey} AS partkey, {quantity} AS quantity, {discount} AS discount,
      {tax} AS tax
    FROM (
      SELECT *, explode(sequence(1, {lines})) AS linenumber
      FROM (SELECT id AS orderkey, {custkey} AS custkey, {orderdate} AS orderdate FROM {keys})))))"""

_LINEITEM = """
SELECT orderkey AS l_orderkey, partkey AS l_partkey, suppkey AS l_suppkey, linenumber AS l_linenumber,
  CAST(quantity AS DECIMAL(15, 2)) AS l_quantity, CAST(CAST(cents AS DECIMAL(15, 0)) / 100 AS DECIMAL(15, 2)) AS l_extendedprice,
  CAST(CAST(discount AS DECIMAL(15, 0)) / 100 AS DECIMAL(15, 2)) AS l_discount,
  CAST(CAST(tax AS DECIMAL(15, 0)) / 100 AS DECIMAL(15, 2)) AS l_tax,
  returnflag AS l_returnflag, linestatus AS l_linestatus, shipdate AS l_shipdate, commitdate AS l_commitdate, receiptdate AS l_receiptdate,
  shipinstruct AS l_shipinstruct, shipmode AS l_shipmode, comment AS l_comment
FROM {lines}"""

_ORDERS = """
SELECT orderkey AS o_orderkey, any_value(custkey) AS o_custkey,
  CASE WHEN min(linestatus) = max(linestatus) THEN min(linestatus) ELSE 'P' END AS o_orderstatus,
  CAST(sum(CAST(cents AS DECIMAL(15, 0)) * (100 - discount) * (100 + tax)) / 1000000 AS DECIMAL(15, 2)) AS o_totalprice,
  any_value(orderdate) AS o_orderdate, any_value(orderpriority) AS o_orderpriority, any_value(clerk) AS o_clerk, 0 AS o_shippriority,
  any_value(ordercomment) AS o_comment
FROM {lines} GROUP BY orderkey"""
