-- A SQL test: the rows that its query returns are wrong.
select
    order_date,
    country_code,
    revenue
from {{ ref('daily_revenue') }}
where revenue <= 0
