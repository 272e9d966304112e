"""seed number -> the CSV files of sample_project/seeds.

Run `python tests/make_sample_seeds.py [seed number] [folder]`. One number always gives the same bytes. The errors are on purpose: padded
and upper-case texts, duplicate customers, quantities of zero and less, test orders, returns without an order, late rows.
"""

from __future__ import annotations

import csv
import io
import sys
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SEED = 20260701
FOLDER = Path(__file__).parent.parent / "sample_project" / "seeds"

CUSTOMERS, PRODUCTS, ORDERS, RETURNS = 600, 150, 3000, 300
FIRST_DAY, LAST_DAY = date(2025, 1, 1), date(2026, 6, 30)

COUNTRIES = (
    ("DE", "Germany", "Central", "EUR", 24),
    ("NL", "Netherlands", "Central", "EUR", 12),
    ("PL", "Poland", "Central", "PLN", 9),
    ("FR", "France", "South", "EUR", 14),
    ("ES", "Spain", "South", "EUR", 7),
    ("IT", "Italy", "South", "EUR", 6),
    ("GB", "United Kingdom", "North", "GBP", 12),
    ("NO", "Norway", "North", "NOK", 6),
    ("SE", "Sweden", "North", "SEK", 6),
    ("DK", "Denmark", "North", "DKK", 4),
    ("ZZ", "Unknown", "Unknown", "EUR", 0),
)
RATES = {"EUR": "1", "GBP": "1.17", "NOK": "0.086", "SEK": "0.089", "DKK": "0.134", "PLN": "0.234"}
FIRST_NAMES = (
    "Anna Łukasz José Zoë Björn Siân Müge Chloé Jürgen Inés Søren Małgorzata Pieter Giulia Aoife Rafał Élodie Henk Ingrid Marco "
    "Fatima Noah Lena Oskar Ida Tomasz Carmen Luca Freya Nils"
).split()
LAST_NAMES = (
    "Müller Kowalska García Nguyễn Åkesson O'Brien Dubois Rossi Jansen Sørensen Schäfer Nowak Hernández Lindqvist Bakker Fischer "
    "Moreau Ferrari Hughes Visser Weiß Çelik Håland D'Angelo Wright Iglesias Petit Öberg Klein Sanders"
).split()
COMPANIES = (
    'Café "Zum Anker"',
    "Brandt & Söhne, GmbH",
    "Hotel Ñandú, S.L.",
    'The "Old Mill" Inn, Ltd',
    "Łódź Studio, Sp. z o.o.",
    "Maison d'Été, SARL",
)
GOODS = {
    "Kitchen": (('Cast-iron Pan, 12"', 42), ("Crème brûlée Torch", 29), ("Stoneware Bowl", 14), ("Chef's Knife", 68), ("Bread Bin", 39)),
    "Lighting": (("Reading Lamp", 59), ("Paper Lantern", 18), ("Pendant Light, 3 bulbs", 129), ("Desk Lamp", 49), ("String Lights", 24)),
    "Textiles": (("Wool Blanket", 79), ("Linen Cushion", 26), ("Bath Towel, set of 2", 32), ("Jute Rug", 119), ("Tea Towel", 9)),
    "Furniture": (("Oak Stool", 89), ("Side Table", 149), ("Bookshelf, 5 shelves", 219), ("Folding Chair", 45), ("Coat Rack", 75)),
    "Garden": (("Planter, 40 cm", 34), ("Watering Can", 22), ("Hand Trowel", 13), ("Bird Feeder", 19), ("Fire Bowl", 139)),
}
STYLES = ("Hygge", "Harbor", "Bauhaus", "Fjord", "Provençal", "Classic")
CHANNELS = ("web", "web", "web", "app", "app", "store")
STATUSES = ("completed",) * 80 + ("shipped",) * 7 + ("pending",) * 4 + ("cancelled",) * 7 + ("test",) * 2
DISCOUNTS = ("",) * 14 + ("5", "10", "10%", "15", "20 %", "none")
REASONS = ("damaged", "changed mind", "wrong size", "late delivery", "")

Row = tuple[Any, ...]


def make(seed: int) -> dict[str, str]:
    """The content of each file, by its name."""
    random = Random(seed)
    rates = _rates(random)
    customers, countries, signed_up = _customers(random)
    products, prices = _products(random)
    orders = _orders(random, countries, signed_up)
    items = _items(random, orders, prices, {(r[0], r[1]): Decimal(r[2]) for r in rates})
    return {
        "countries.csv": _csv(("country_code", "country_name", "region", "currency_code"), [c[:4] for c in COUNTRIES]),
        "exchange_rates.csv": _csv(("rate_month", "currency_code", "rate_to_eur"), rates),
        "customers.csv": _csv(("customer_id", "full_name", "email", "country_code", "signed_up_on", "updated_at"), customers),
        "products.csv": _csv(("product_id", "product_name", "category", "list_price_eur"), products),
        "orders.csv": _csv(("order_id", "customer_id", "ordered_at", "status", "currency_code", "channel"), orders),
        "order_items.csv": _csv(("order_id", "line_number", "product_id", "quantity", "unit_price", "discount_percent"), items),
        "returns.csv": _csv(("return_id", "order_id", "product_id", "returned_on", "quantity", "reason"), _returns(random, orders, items)),
    }


def _rates(random: Random) -> list[Row]:
    rows, month = [], FIRST_DAY
    while month <= LAST_DAY:
        for currency, base in RATES.items():
            drift = Decimal(0) if currency == "EUR" else Decimal(random.randrange(-300, 301)) / 10_000
            rows.append((month, currency, f"{Decimal(base) * (1 + drift):.6f}"))
        month = (month + timedelta(days=32)).replace(day=1)
    return rows


def _customers(random: Random) -> tuple[list[Row], dict[int, str], dict[int, date]]:
    rows: list[Row] = []
    countries: dict[int, str] = {}
    days: dict[int, date] = {}
    codes = [c[0] for c in COUNTRIES for _ in range(c[4])]
    for customer in range(1001, 1001 + CUSTOMERS):
        first, last = random.choice(FIRST_NAMES), random.choice(LAST_NAMES)
        name = random.choice(COMPANIES) if random.random() < 0.04 else f"{first} {last}"
        email = f"customer{customer}@{random.choice(('example.com', 'example.org', 'mail.example.net'))}"
        code = random.choice(codes)
        countries[customer] = code
        signed_up = days[customer] = FIRST_DAY + timedelta(days=random.randrange(-500, 500))
        updated = datetime(signed_up.year, signed_up.month, signed_up.day, random.randrange(24), random.randrange(60), random.randrange(60))
        row = (customer, _padded(random, name), _dirty_email(random, email), _dirty_country(random, code), signed_up, updated)
        rows.append(row)
        if random.random() < 0.07:  # changed later: the newer row counts
            later = updated + timedelta(days=random.randrange(1, 90), hours=random.randrange(24))
            rows.append((customer, name, f"new.{email}", code, signed_up, later))
        elif random.random() < 0.01:  # delivered twice
            rows.append(row)
    return rows, countries, days


def _padded(random: Random, text: str) -> str:
    return f"  {text} " if random.random() < 0.03 else text


def _dirty_email(random: Random, email: str) -> str:
    chance = random.random()
    if chance < 0.10:
        return email.upper()
    if chance < 0.18:
        return f" {email} "
    return "no email" if chance < 0.20 else email


def _dirty_country(random: Random, code: str) -> str:
    chance = random.random()
    if chance < 0.04:
        return ""
    if chance < 0.05:
        return "N/A"
    if chance < 0.12:
        return code.lower()
    return f" {code}" if chance < 0.14 else code


def _products(random: Random) -> tuple[list[Row], dict[int, Decimal]]:
    names = [(f"{style} {name}", category, price) for style in STYLES for category, goods in GOODS.items() for name, price in goods]
    rows = []
    for product, (name, category, price) in enumerate(names[:PRODUCTS], 101):
        chance = random.random()
        category = category.lower() if chance < 0.06 else f"{category.upper()} " if chance < 0.10 else category
        rows.append((product, name, category, f"{Decimal(price) * Decimal(random.randrange(80, 131)) / 100:.2f}"))
    return rows, {row[0]: Decimal(row[3]) for row in rows}


def _orders(random: Random, countries: dict[int, str], signed_up: dict[int, date]) -> list[Row]:
    currencies = {c[0]: c[3] for c in COUNTRIES}
    days = [FIRST_DAY + timedelta(days=n) for n in range((LAST_DAY - FIRST_DAY).days + 1)]
    weights = [(1 + n / len(days)) * (1.8 if day.month in (11, 12) else 1) for n, day in enumerate(days)]
    dates = sorted(random.choices(days, weights, k=ORDERS))
    loyalty = {c: random.choice((1, 1, 1, 2, 2, 5)) for c in countries if random.random() < 0.92}
    rows = []
    for order, day in enumerate(dates, 50_001):
        if random.random() < 0.02:  # came in late: its number is higher than its date suggests
            day = max(FIRST_DAY, day - timedelta(days=random.randrange(10, 60)))
        buyers = [c for c in loyalty if signed_up[c] <= day]
        customer = random.choices(buyers, [loyalty[c] for c in buyers])[0]
        at = datetime(day.year, day.month, day.day, random.randrange(24), random.randrange(60), random.randrange(60))
        status, channel, currency = random.choice(STATUSES), random.choice(CHANNELS), currencies[countries[customer]]
        chance = random.random()
        if chance < 0.05:
            status = status.upper()
        elif chance < 0.08:
            status = f" {status.capitalize()}"
        elif chance < 0.11:
            channel = channel.upper()
        elif chance < 0.14:
            currency = currency.lower()
        elif chance < 0.16 and currency == "EUR":
            currency = ""
        rows.append((order, customer, at, status, currency, channel))
    return rows


def _items(random: Random, orders: list[Row], prices: dict[int, Decimal], rates: dict[tuple[date, str], Decimal]) -> list[Row]:
    rows = []
    popular = [random.choice((1, 2, 3, 6)) for _ in prices]
    for order, _, at, _, currency, _ in orders:
        chosen = dict.fromkeys(random.choices(list(prices), popular, k=random.choice((1, 2, 2, 3, 3, 4))))
        rate = rates[at.date().replace(day=1), currency.upper() or "EUR"]
        for line, product in enumerate(chosen, 1):
            quantity = random.choice((1, 1, 1, 2, 2, 3, 4))
            if random.random() < 0.015:
                quantity = random.choice((0, -1, -2))
            price = (prices[product] / rate).quantize(Decimal("0.01"), ROUND_HALF_UP)
            rows.append((order, line, product, quantity, price, random.choice(DISCOUNTS)))
    return rows


def _returns(random: Random, orders: list[Row], items: list[Row]) -> list[Row]:
    placed = {order[0]: order[2].date() for order in orders}
    returnable = [item for item in items if item[3] > 0]
    rows = []
    for number, item in enumerate(sorted(random.sample(returnable, RETURNS)), 7001):
        order, _, product, bought = item[:4]
        day = placed[order] + timedelta(days=random.randrange(2, 40))
        text = random.choice((day.isoformat(),) * 8 + (day.strftime("%d.%m.%Y"), "unknown"))
        reason = random.choice(REASONS)
        if random.random() < 0.05:  # the order does not exist
            order += 900_000
        rows.append((number, order, product, text, random.randint(1, bought), reason.title() if random.random() < 0.1 else reason))
    return rows


def _csv(header: Sequence[str], rows: Iterable[Row]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else SEED
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else FOLDER
    for name, text in make(number).items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
        print(f"{name}: {text.count(chr(10)) - 1:,} rows, {len(text.encode()):,} bytes")
