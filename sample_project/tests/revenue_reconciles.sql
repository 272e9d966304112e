-- A SQL test returns the rows that are wrong: months whose revenue by day differs from their revenue by order.
with by_day as (
    select trunc(order_date, 'MM') as sales_month, sum(revenue_eur) as revenue_eur
    from {{ ref('daily_revenue') }}
    group by trunc(order_date, 'MM')
),

by_order as (
    select trunc(order_date, 'MM') as sales_month, sum(revenue_eur) as revenue_eur
    from {{ ref('order_facts') }}
    group by trunc(order_date, 'MM')
)

select
    coalesce(by_day.sales_month, by_order.sales_month) as sales_month,
    by_day.revenue_eur as revenue_by_day,
    by_order.revenue_eur as revenue_by_order
from by_day
full outer join by_order
    on by_day.sales_month = by_order.sales_month
where by_day.revenue_eur is distinct from by_order.revenue_eur
