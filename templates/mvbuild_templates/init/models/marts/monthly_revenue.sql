-- A materialized view over another one. A plain table name does what ref('daily_revenue') would do.
select
    trunc(order_date, 'MM') as month,
    sum(orders) as orders,
    sum(revenue) as revenue
from mart.daily_revenue
group by trunc(order_date, 'MM')
