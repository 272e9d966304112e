"""A number of customers and a seed -> the source tables of TPC-DI, small: the rows of the historical load, and the changes of each day after it.

The shape of the sources follows the specification of TPC-DI 1.1.0, part 2: logs of customers and accounts in which NULL means "unchanged",
FINWIRE records that name a company by its CIK or by its name, trades that are updated, a prospect list that is delivered whole each day.
All values are made here; nothing is downloaded. Rows are tuples in the order of the columns.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]

_TEXT, _INT, _LONG, _DATE = pa.string(), pa.int32(), pa.int64(), pa.date32()
_AT, _MONEY = pa.timestamp("us", "UTC"), pa.decimal128(12, 2)

SOURCES: Mapping[str, pa.Schema] = {
    name: pa.schema(list(columns.items()))
    for name, columns in {
        "status_type": {"st_id": _TEXT, "st_name": _TEXT},
        "trade_type": {"tt_id": _TEXT, "tt_name": _TEXT},
        "tax_rate": {"tx_id": _TEXT, "tx_name": _TEXT, "tx_rate": pa.decimal128(6, 5)},
        "industry": {"in_id": _TEXT, "in_name": _TEXT},
        "hr": {
            "employee_id": _LONG, "manager_id": _LONG, "first_name": _TEXT, "last_name": _TEXT, "job_code": _INT, "branch": _TEXT,
            "office": _TEXT, "phone": _TEXT,
        },
        "customer_mgmt": {
            "action": _TEXT, "action_at": _AT, "c_id": _LONG, "tax_id": _TEXT, "gender": _TEXT, "tier": _INT, "birth_date": _DATE,
            "last_name": _TEXT, "first_name": _TEXT, "address": _TEXT, "postal_code": _TEXT, "city": _TEXT, "email": _TEXT,
            "local_tax": _TEXT, "national_tax": _TEXT,
        },
        "account_mgmt": {
            "action": _TEXT, "action_at": _AT, "ca_id": _LONG, "c_id": _LONG, "broker_id": _LONG, "description": _TEXT, "tax_status": _INT,
        },
        "finwire_cmp": {
            "pts": _AT, "company_name": _TEXT, "cik": _LONG, "status": _TEXT, "industry_id": _TEXT, "sp_rating": _TEXT,
            "founding_date": _DATE, "ceo_name": _TEXT,
        },
        "finwire_sec": {
            "pts": _AT, "symbol": _TEXT, "issue_type": _TEXT, "status": _TEXT, "name": _TEXT, "exchange_id": _TEXT, "shares": _LONG,
            "dividend": _MONEY, "company": _TEXT,
        },
        "finwire_fin": {"pts": _AT, "year": _INT, "quarter": _INT, "quarter_start": _DATE, "revenue": _MONEY, "eps": _MONEY, "company": _TEXT},
        "prospect": {
            "agency_id": _TEXT, "last_name": _TEXT, "first_name": _TEXT, "address": _TEXT, "postal_code": _TEXT, "income": _LONG,
            "cars": _INT, "children": _INT, "age": _INT, "credit_rating": _INT, "own_or_rent": _TEXT, "credit_cards": _INT, "net_worth": _LONG,
        },
        "trade": {
            "t_id": _LONG, "t_at": _AT, "status": _TEXT, "type": _TEXT, "is_cash": pa.bool_(), "symbol": _TEXT, "quantity": _INT,
            "bid_price": _MONEY, "ca_id": _LONG, "executor": _TEXT, "trade_price": _MONEY, "fee": _MONEY, "commission": _MONEY, "tax": _MONEY,
        },
        "trade_history": {"t_id": _LONG, "at": _AT, "status": _TEXT},
        "cash_transaction": {"ca_id": _LONG, "at": _AT, "amount": _MONEY, "name": _TEXT},
        "holding_history": {"first_t_id": _LONG, "t_id": _LONG, "before_quantity": _INT, "after_quantity": _INT},
        "daily_market": {"day": _DATE, "symbol": _TEXT, "close": _MONEY, "high": _MONEY, "low": _MONEY, "volume": _LONG},
        "watch_history": {"c_id": _LONG, "symbol": _TEXT, "at": _AT, "action": _TEXT},
    }.items()
}  # fmt: skip

FIRST = date(2026, 1, 5)
"""The day of the first batch after the historical load."""
HISTORY = 420
"""Days of daily_market in the historical load: a little more than the 52 weeks that its window looks back."""
_STATUS = {"ACTV": "Active", "CMPT": "Completed", "CNCL": "Canceled", "PNDG": "Pending", "SBMT": "Submitted", "INAC": "Inactive"}
_RATINGS = ("AAA", "AA", "A", "BBB", "BB+", "B", "CCC", "D")
_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jo")


@dataclass
class Batch:
    """What one day brings. A table is appended to, unless it is replaced or updated."""

    appended: dict[str, list[Row]] = field(default_factory=dict)
    replaced: dict[str, list[Row]] = field(default_factory=dict)
    updates: list[str] = field(default_factory=list)
    """Statements of Spark on tables of `lake.raw`."""

    def append(self, table: str, *row: Any) -> None:
        self.appended.setdefault(table, []).append(row)


class Brokerage:
    """The operational systems whose extracts are the sources."""

    def __init__(self, customers: int, seed: int) -> None:
        self._random = random.Random(seed)
        self._first_customers = customers
        self._customers: list[int] = []
        self._accounts: list[int] = []
        self._companies: list[tuple[int, str]] = []
        self._symbols: list[str] = []
        self._prices: dict[str, float] = {}
        self._trades = 0
        self._open_trades: list[int] = []
        self._watched: list[tuple[int, str]] = []
        self._prospects: list[Row] = []

    def history(self) -> Batch:
        """The historical load: batch 1 of TPC-DI."""
        batch, rng = Batch(), self._random
        self._references(batch)
        brokers = max(4, self._first_customers // 20)
        for one in range(1, brokers * 3 + 1):
            job = 314 if one % 3 == 0 else 534
            batch.append(
                "hr", one, max(1, one // 10), rng.choice(_NAMES), f"Broker{one}", job, f"b{one % 5}", f"o{one % 9}", f"+1 {one:07}"
            )
        for number in range(max(8, self._first_customers // 10)):
            self._company(batch, number + 1, FIRST - timedelta(days=2000))
        for _ in range(max(12, self._first_customers // 6)):
            self._security(batch, FIRST - timedelta(days=1500))
        for cik, name in self._companies:
            for quarter in range(6):
                self._financial(batch, cik, name, FIRST - timedelta(days=91 * (6 - quarter)))
        for _ in range(self._first_customers):
            self._new_customer(batch, FIRST - timedelta(days=rng.randrange(200, 900)))
        for back in range(HISTORY, 0, -1):
            self._market(batch, FIRST - timedelta(days=back))
        for _ in range(self._first_customers * 10):
            self._trade(batch, FIRST - timedelta(days=rng.randrange(1, 150)))
        for _ in range(self._first_customers * 5):
            self._cash(batch, FIRST - timedelta(days=rng.randrange(1, 150)))
            self._watch(batch, FIRST - timedelta(days=rng.randrange(1, 150)))
        self._prospects = [self._prospect(number) for number in range(self._first_customers)]
        batch.replaced["prospect"] = list(self._prospects)
        return batch

    def day(self, number: int) -> Batch:
        """The extracts of one day: batches 2, 3 and so on. About one row of a hundred is new or changed."""
        batch, rng, day = Batch(), self._random, FIRST + timedelta(days=number)
        few = max(1, self._first_customers // 100)
        for _ in range(few):
            self._new_customer(batch, day)
            self._change_customer(batch, day)
            self._change_account(batch, day)
        self._company(batch, rng.choice(self._companies)[0], day)
        self._security(batch, day, known=True)
        self._financial(batch, *rng.choice(self._companies), day)
        self._market(batch, day)
        self._finish_trades(batch, day, few * 4)
        for _ in range(few * 8):
            self._trade(batch, day)
            self._cash(batch, day)
            self._watch(batch, day)
        for _ in range(few):
            self._prospects[rng.randrange(len(self._prospects))] = self._prospect(rng.randrange(10 * self._first_customers))
        batch.replaced["prospect"] = list(self._prospects)
        return batch

    def _references(self, batch: Batch) -> None:
        for status in _STATUS.items():
            batch.append("status_type", *status)
        for kind in (("TMB", "Market Buy"), ("TMS", "Market Sell"), ("TLB", "Limit Buy"), ("TLS", "Limit Sell"), ("TSL", "Stop Loss")):
            batch.append("trade_type", *kind)
        for number in range(20):
            batch.append("tax_rate", f"T{number}", f"Tax {number}", Decimal(number) / 100)
            batch.append("industry", f"I{number}", f"Industry {number}")

    def _at(self, day: date) -> datetime:
        return datetime.combine(day, time(), timezone.utc) + timedelta(microseconds=self._random.randrange(86_400 * 10**6))

    def _money(self, most: int) -> Decimal:
        return Decimal(self._random.randrange(1, most * 100)) / 100

    def _company(self, batch: Batch, cik: int, day: date) -> None:
        """A new company, or the next version of one. Its name never changes: FINWIRE records may name it."""
        rng, name = self._random, f"Company {cik}"
        if (cik, name) not in self._companies:
            self._companies.append((cik, name))
        founded = date(1950, 1, 1) + timedelta(days=cik * 37)
        industry, rating, ceo = f"I{rng.randrange(20)}", rng.choice(_RATINGS), f"CEO {rng.randrange(99)}"
        batch.append("finwire_cmp", self._at(day), name, cik, "ACTV", industry, rating, founded, ceo)

    def _named(self, cik: int, name: str) -> str:
        return name if self._random.random() < 0.5 else str(cik)

    def _security(self, batch: Batch, day: date, *, known: bool = False) -> None:
        rng = self._random
        if known:
            symbol = rng.choice(self._symbols)
        else:
            symbol = f"S{len(self._symbols):05}"
            self._symbols.append(symbol)
            self._prices[symbol] = rng.uniform(5, 200)
        company = self._companies[int(symbol[1:]) % len(self._companies)]
        status, shares = rng.choice(("ACTV", "INAC")) if known else "ACTV", rng.randrange(10**6)
        name, dividend = f"Security {symbol}", self._money(9)
        batch.append("finwire_sec", self._at(day), symbol, "COMMON", status, name, "NYSE", shares, dividend, self._named(*company))

    def _financial(self, batch: Batch, cik: int, name: str, day: date) -> None:
        quarter = (day.month - 1) // 3 + 1
        start = date(day.year, 3 * quarter - 2, 1)
        batch.append("finwire_fin", self._at(day), day.year, quarter, start, self._money(10**6), self._money(8), self._named(cik, name))

    def _new_customer(self, batch: Batch, day: date) -> None:
        rng, one = self._random, len(self._customers) + 1
        self._customers.append(one)
        at, born = self._at(day), date(1960, 1, 1) + timedelta(days=one * 11 % 15000)
        person = (f"{one:09}", rng.choice("FM"), rng.randrange(1, 4), born, f"Family{one % 97}", rng.choice(_NAMES))
        home = (f"{one} Main Street", f"{10000 + one}", "Springfield", f"c{one}@example.org", f"T{one % 20}", f"T{one % 7}")
        batch.append("customer_mgmt", "NEW", at, one, *person, *home)
        for _ in range(rng.randrange(1, 3)):
            self._accounts.append(len(self._accounts) + 1)
            batch.append("account_mgmt", "ADDACCT", at, self._accounts[-1], one, self._broker(), f"Account {self._accounts[-1]}", one % 3)

    def _broker(self) -> int:
        return 3 * self._random.randrange(1, max(4, self._first_customers // 20) + 1)

    def _change_customer(self, batch: Batch, day: date) -> None:
        """Only what changed has a value."""
        rng, one = self._random, self._random.choice(self._customers)
        if rng.random() < 0.2:
            batch.append("customer_mgmt", "INACT", self._at(day), one, *(None,) * 12)
            return
        tier, address, email = rng.randrange(1, 4), f"{rng.randrange(999)} New Road", f"n{one}@example.org"
        new = (None, None, tier, None, None, None, address, None, None, email, None, None)
        batch.append("customer_mgmt", "UPDCUST", self._at(day), one, *new)

    def _change_account(self, batch: Batch, day: date) -> None:
        closed = self._random.random() < 0.2
        action, broker = ("CLOSEACCT", None) if closed else ("UPDACCT", self._broker())
        batch.append("account_mgmt", action, self._at(day), self._random.choice(self._accounts), None, broker, None, None)

    def _market(self, batch: Batch, day: date) -> None:
        for symbol in self._symbols:
            close = self._prices[symbol] = max(1.0, self._prices[symbol] * self._random.uniform(0.98, 1.021))
            low, high = close * self._random.uniform(0.97, 1), close * self._random.uniform(1, 1.03)
            values = (Decimal(f"{value:.2f}") for value in (close, high, low))
            batch.append("daily_market", day, symbol, *values, self._random.randrange(10**6))

    def _trade(self, batch: Batch, day: date) -> None:
        rng = self._random
        self._trades += 1
        one, at = self._trades, self._at(day)
        done = rng.random() < 0.9
        price, quantity = self._money(200), rng.randrange(1, 500)
        order = (rng.choice(("TMB", "TMS", "TLB", "TLS")), rng.random() < 0.8, rng.choice(self._symbols), quantity, price)
        costs = (price, self._money(20), self._money(90), self._money(50)) if done else (None,) * 4
        status = "CMPT" if done else "SBMT"
        batch.append("trade", one, at, status, *order, rng.choice(self._accounts), rng.choice(_NAMES), *costs)
        batch.append("trade_history", one, at, "SBMT")
        if done:
            batch.append("trade_history", one, at + timedelta(minutes=rng.randrange(1, 300)), "CMPT")
            batch.append("holding_history", max(1, one - rng.randrange(50)), one, 0, quantity)
        else:
            self._open_trades.append(one)

    def _finish_trades(self, batch: Batch, day: date, most: int) -> None:
        """Trades that were submitted earlier are completed or canceled: their rows are updated in place."""
        ended, self._open_trades = self._open_trades[:most], self._open_trades[most:]
        for one in ended:
            batch.append("trade_history", one, self._at(day), "CNCL" if one % 5 == 0 else "CMPT")
        if ended:
            batch.updates.append(
                "UPDATE lake.raw.trade SET status = CASE WHEN t_id % 5 = 0 THEN 'CNCL' ELSE 'CMPT' END, trade_price = bid_price, fee = 1, "
                f"commission = 2, tax = 3 WHERE t_id IN ({', '.join(map(str, ended))})"
            )

    def _cash(self, batch: Batch, day: date) -> None:
        amount = self._money(5000) - 2000
        batch.append("cash_transaction", self._random.choice(self._accounts), self._at(day), amount, "transfer")

    def _watch(self, batch: Batch, day: date) -> None:
        if self._watched and self._random.random() < 0.4:
            customer, symbol = self._watched.pop(self._random.randrange(len(self._watched)))
            batch.append("watch_history", customer, symbol, self._at(day), "CNCL")
            return
        one = (self._random.choice(self._customers), self._random.choice(self._symbols))
        self._watched.append(one)
        batch.append("watch_history", *one, self._at(day), "ACTV")

    def _prospect(self, number: int) -> Row:
        rng, of = self._random, number + 1
        is_customer = number < len(self._customers)
        address = f"{of} Main Street" if is_customer else f"{of} Elsewhere"
        person = (f"A{number}", f"Family{of % 97}", rng.choice(_NAMES), address, f"{10000 + of}")
        home = (rng.choice((None, rng.randrange(300_000))), rng.randrange(5), rng.randrange(6), rng.randrange(18, 90))
        return (*person, *home, rng.randrange(300, 850), rng.choice("OR"), rng.randrange(9), rng.randrange(2_000_000))


def arrow(table: str, rows: Sequence[Row]) -> pa.Table:
    """Rows as the table has them."""
    schema = SOURCES[table]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.Table.from_arrays([pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)], schema=schema)
