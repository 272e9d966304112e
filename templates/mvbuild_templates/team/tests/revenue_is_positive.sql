-- A SQL test: the rows that its query returns are wrong.
select
    order_date,
    country_code,
    revenue_cents
from {{ ref('daily_revenue') }}
where revenue_cents <= 0
