"""The warehouse of TPC-DI as MVs: its dimensions and facts, each one query over the sources and the other MVs.

They follow the transformations of the specification of TPC-DI 1.1.0, part 4, with two differences. Surrogate keys are left out: a version of
a row is named by its key and the time from which it holds. Rows that are current end at NULL, and not in the year 9999.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MODELS: Mapping[str, str] = {
    "dim_broker": """
SELECT employee_id AS broker_id, manager_id, first_name, last_name, branch, office, phone
FROM {{ source('raw', 'hr') }}
WHERE job_code = 314
""",
    "dim_company": """
SELECT c.cik AS company_id, c.company_name AS name, s.st_name AS status, i.in_name AS industry, c.sp_rating,
  c.sp_rating NOT LIKE 'A%' AND c.sp_rating NOT LIKE 'BBB%' AS is_low_grade, c.founding_date, c.ceo_name,
  c.pts AS effective_at, lead(c.pts) OVER (PARTITION BY c.cik ORDER BY c.pts) AS end_at,
  lead(c.pts) OVER (PARTITION BY c.cik ORDER BY c.pts) IS NULL AS is_current
FROM {{ source('raw', 'finwire_cmp') }} c
JOIN {{ source('raw', 'status_type') }} s ON s.st_id = c.status
JOIN {{ source('raw', 'industry') }} i ON i.in_id = c.industry_id
""",
    "dim_security": """
WITH versions AS (
  SELECT *, lead(pts) OVER (PARTITION BY symbol ORDER BY pts) AS next_at
  FROM {{ source('raw', 'finwire_sec') }}
)
SELECT v.symbol, v.issue_type, s.st_name AS status, v.name, v.exchange_id, c.company_id, v.shares, v.dividend,
  greatest(v.pts, c.effective_at) AS effective_at, least(v.next_at, c.end_at) AS end_at,
  v.next_at IS NULL AND c.end_at IS NULL AS is_current
FROM versions v
JOIN {{ source('raw', 'status_type') }} s ON s.st_id = v.status
JOIN {{ ref('dim_company') }} c
  ON (v.company = c.name OR v.company = CAST(c.company_id AS STRING))
  AND (v.next_at IS NULL OR c.effective_at < v.next_at) AND (c.end_at IS NULL OR v.pts < c.end_at)
""",
    "financial": """
SELECT c.company_id, f.year, f.quarter, f.quarter_start, f.revenue, f.eps
FROM {{ source('raw', 'finwire_fin') }} f
JOIN {{ ref('dim_company') }} c
  ON (f.company = c.name OR f.company = CAST(c.company_id AS STRING))
  AND c.effective_at <= f.pts AND (c.end_at IS NULL OR f.pts < c.end_at)
""",
    "dim_customer": """
WITH versions AS (
  SELECT c_id, action, action_at,
    last_value(tax_id) IGNORE NULLS OVER so_far AS tax_id,
    last_value(gender) IGNORE NULLS OVER so_far AS gender,
    last_value(tier) IGNORE NULLS OVER so_far AS tier,
    last_value(birth_date) IGNORE NULLS OVER so_far AS birth_date,
    last_value(last_name) IGNORE NULLS OVER so_far AS last_name,
    last_value(first_name) IGNORE NULLS OVER so_far AS first_name,
    last_value(address) IGNORE NULLS OVER so_far AS address,
    last_value(postal_code) IGNORE NULLS OVER so_far AS postal_code,
    last_value(city) IGNORE NULLS OVER so_far AS city,
    last_value(email) IGNORE NULLS OVER so_far AS email,
    last_value(local_tax) IGNORE NULLS OVER so_far AS local_tax,
    last_value(national_tax) IGNORE NULLS OVER so_far AS national_tax,
    lead(action_at) OVER (PARTITION BY c_id ORDER BY action_at) AS end_at
  FROM {{ source('raw', 'customer_mgmt') }}
  WINDOW so_far AS (PARTITION BY c_id ORDER BY action_at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
SELECT v.c_id AS customer_id, CASE WHEN v.action = 'INACT' THEN 'Inactive' ELSE 'Active' END AS status, v.tax_id,
  coalesce(v.gender, 'U') AS gender, v.tier, v.birth_date, v.last_name, v.first_name, v.address, v.postal_code, v.city, v.email,
  l.tx_name AS local_tax, l.tx_rate AS local_rate, n.tx_name AS national_tax, n.tx_rate AS national_rate,
  p.agency_id, p.credit_rating, p.net_worth,
  v.action_at AS effective_at, v.end_at, v.end_at IS NULL AS is_current
FROM versions v
JOIN {{ source('raw', 'tax_rate') }} l ON l.tx_id = v.local_tax
JOIN {{ source('raw', 'tax_rate') }} n ON n.tx_id = v.national_tax
LEFT JOIN {{ source('raw', 'prospect') }} p
  ON upper(p.last_name) = upper(v.last_name) AND upper(p.first_name) = upper(v.first_name)
  AND upper(p.address) = upper(v.address) AND p.postal_code = v.postal_code
""",
    "dim_account": """
WITH versions AS (
  SELECT ca_id, action, action_at,
    last_value(c_id) IGNORE NULLS OVER so_far AS c_id,
    last_value(broker_id) IGNORE NULLS OVER so_far AS broker_id,
    last_value(description) IGNORE NULLS OVER so_far AS description,
    last_value(tax_status) IGNORE NULLS OVER so_far AS tax_status,
    lead(action_at) OVER (PARTITION BY ca_id ORDER BY action_at) AS next_at
  FROM {{ source('raw', 'account_mgmt') }}
  WINDOW so_far AS (PARTITION BY ca_id ORDER BY action_at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
SELECT v.ca_id AS account_id, b.broker_id, c.customer_id, CASE WHEN v.action = 'CLOSEACCT' THEN 'Inactive' ELSE 'Active' END AS status,
  v.description, v.tax_status, greatest(v.action_at, c.effective_at) AS effective_at, least(v.next_at, c.end_at) AS end_at,
  v.next_at IS NULL AND c.is_current AS is_current
FROM versions v
JOIN {{ ref('dim_broker') }} b ON b.broker_id = v.broker_id
JOIN {{ ref('dim_customer') }} c
  ON c.customer_id = v.c_id
  AND (v.next_at IS NULL OR c.effective_at < v.next_at) AND (c.end_at IS NULL OR v.action_at < c.end_at)
""",
    "dim_trade": """
WITH times AS (
  SELECT t_id, min(CASE WHEN status IN ('SBMT', 'PNDG') THEN at END) AS created_at,
    max(CASE WHEN status IN ('CMPT', 'CNCL') THEN at END) AS closed_at
  FROM {{ source('raw', 'trade_history') }}
  GROUP BY t_id
)
SELECT t.t_id AS trade_id, h.created_at, h.closed_at, s.st_name AS status, y.tt_name AS type, t.is_cash, t.symbol, d.company_id,
  t.quantity, t.bid_price, a.customer_id, t.ca_id AS account_id, a.broker_id, t.executor, t.trade_price, t.fee, t.commission, t.tax
FROM {{ source('raw', 'trade') }} t
JOIN times h ON h.t_id = t.t_id
JOIN {{ source('raw', 'status_type') }} s ON s.st_id = t.status
JOIN {{ source('raw', 'trade_type') }} y ON y.tt_id = t.type
JOIN {{ ref('dim_security') }} d
  ON d.symbol = t.symbol AND d.effective_at <= h.created_at AND (d.end_at IS NULL OR h.created_at < d.end_at)
JOIN {{ ref('dim_account') }} a
  ON a.account_id = t.ca_id AND a.effective_at <= h.created_at AND (a.end_at IS NULL OR h.created_at < a.end_at)
""",
    "fact_cash_balances": """
WITH daily AS (
  SELECT ca_id, CAST(at AS DATE) AS day, sum(amount) AS amount
  FROM {{ source('raw', 'cash_transaction') }}
  GROUP BY ca_id, CAST(at AS DATE)
)
SELECT a.customer_id, d.ca_id AS account_id, d.day,
  sum(d.amount) OVER (PARTITION BY d.ca_id ORDER BY d.day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS cash
FROM daily d
JOIN {{ ref('dim_account') }} a ON a.account_id = d.ca_id AND a.is_current
""",
    "fact_holdings": """
SELECT h.t_id AS current_trade_id, h.first_t_id AS trade_id, t.customer_id, t.account_id, t.symbol, t.company_id, t.closed_at,
  t.trade_price AS current_price, h.after_quantity AS current_holding
FROM {{ source('raw', 'holding_history') }} h
JOIN {{ ref('dim_trade') }} t ON t.trade_id = h.t_id
""",
    "fact_watches": """
WITH watches AS (
  SELECT c_id, symbol, min(CASE WHEN action = 'ACTV' THEN at END) AS placed_at, max(CASE WHEN action = 'CNCL' THEN at END) AS removed_at
  FROM {{ source('raw', 'watch_history') }}
  GROUP BY c_id, symbol
)
SELECT c.customer_id, w.symbol, s.company_id, CAST(w.placed_at AS DATE) AS placed_on, CAST(w.removed_at AS DATE) AS removed_on
FROM watches w
JOIN {{ ref('dim_customer') }} c ON c.customer_id = w.c_id AND c.is_current
JOIN {{ ref('dim_security') }} s ON s.symbol = w.symbol AND s.is_current
""",
    "fact_market_history": """
WITH market AS (
  SELECT *,
    max(high) OVER last_year AS high_of_year,
    min(low) OVER last_year AS low_of_year
  FROM {{ source('raw', 'daily_market') }}
  WINDOW last_year AS (PARTITION BY symbol ORDER BY day RANGE BETWEEN INTERVAL 364 DAYS PRECEDING AND CURRENT ROW)
), earnings AS (
  SELECT company_id, quarter_start, sum(eps) OVER (PARTITION BY company_id ORDER BY quarter_start
    RANGE BETWEEN INTERVAL 400 DAYS PRECEDING AND INTERVAL 1 DAY PRECEDING) AS eps
  FROM (SELECT company_id, quarter_start, max(eps) AS eps FROM {{ ref('financial') }} GROUP BY company_id, quarter_start)
)
SELECT m.day, m.symbol, s.company_id, m.close, m.high, m.low, m.volume, m.high_of_year, m.low_of_year,
  CASE WHEN e.eps > 0 THEN m.close / e.eps END AS price_earnings_ratio, 100 * s.dividend / m.close AS yield
FROM market m
JOIN {{ ref('dim_security') }} s ON s.symbol = m.symbol AND s.is_current
LEFT JOIN earnings e ON e.company_id = s.company_id AND e.quarter_start = CAST(date_trunc('QUARTER', m.day) AS DATE)
""",
    "prospects": """
SELECT p.agency_id, p.last_name, p.first_name, p.address, p.postal_code, p.income, p.net_worth,
  EXISTS (
    SELECT 1 FROM {{ ref('dim_customer') }} c
    WHERE c.is_current AND c.status = 'Active' AND upper(c.last_name) = upper(p.last_name) AND upper(c.first_name) = upper(p.first_name)
      AND upper(c.address) = upper(p.address) AND c.postal_code = p.postal_code
  ) AS is_customer,
  concat_ws('+', CASE WHEN p.net_worth > 1000000 OR p.income > 200000 THEN 'HighValue' END,
    CASE WHEN p.children > 3 OR p.credit_cards > 5 THEN 'Expenses' END, CASE WHEN p.age > 45 THEN 'Boomer' END,
    CASE WHEN p.income < 50000 OR p.credit_rating < 600 OR p.net_worth < 100000 THEN 'MoneyAlert' END,
    CASE WHEN p.cars > 3 OR p.credit_cards > 7 THEN 'Spender' END, CASE WHEN p.age < 25 AND p.net_worth > 1000000 THEN 'Inherited' END
  ) AS marketing
FROM {{ source('raw', 'prospect') }} p
""",
    "alerts": """
SELECT CAST(created_at AS DATE) AS day, count(*) AS trades,
  count_if(commission IS NOT NULL AND commission > trade_price * quantity) AS commission_too_high,
  count_if(fee IS NOT NULL AND fee > trade_price * quantity) AS fee_too_high
FROM {{ ref('dim_trade') }}
GROUP BY CAST(created_at AS DATE)
""",
    "brokers_by_month": """
SELECT b.broker_id, b.last_name, date_trunc('MONTH', t.created_at) AS month, count(*) AS trades, sum(t.commission) AS commission,
  rank() OVER (PARTITION BY date_trunc('MONTH', t.created_at) ORDER BY sum(t.commission) DESC, b.broker_id) AS place
FROM {{ ref('dim_trade') }} t
JOIN {{ ref('dim_broker') }} b ON b.broker_id = t.broker_id
GROUP BY b.broker_id, b.last_name, date_trunc('MONTH', t.created_at)
""",
}
"""In an order in which each one comes after what it reads."""


def plain(sql: str) -> str:
    """The query in plain Spark, over base tables in `lake.raw` and views with the names of MVs."""
    sql = re.sub(r"\{\{ source\('raw', '(\w+)'\) \}\}", r"lake.raw.\1", sql)
    return re.sub(r"\{\{ ref\('(\w+)'\) \}\}", r"\1", sql)
