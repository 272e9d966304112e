-- A materialized view. mvbuild refreshes it when one of the tables below it has changed, and only then.
{{ config(partition_by=['month(order_date)']) }}

select
    orders.order_date,
    coalesce(nullif(customers.country_code, ''), 'unknown') as country_code,
    count(*) as orders,
    sum({{ money.cents('orders.amount') }}) as revenue_cents
from {{ ref('clean_orders') }} as orders
inner join {{ ref('customers') }} as customers
    on orders.customer_id = customers.customer_id
where orders.status = 'completed'
group by orders.order_date, coalesce(nullif(customers.country_code, ''), 'unknown')
