-- A materialized view over another one.
select
    trunc(order_date, 'MM') as month,
    sum(orders) as orders,
    sum(revenue_cents) as revenue_cents
from {{ ref('daily_revenue') }}
group by trunc(order_date, 'MM')
