-- Order lines that count as sales, in euros. Ephemeral: the models that read it get this query as a subquery.
select
    orders.order_id,
    orders.order_date,
    orders.customer_id,
    customers.country_code,
    orders.channel,
    items.line_number,
    items.product_id,
    items.quantity,
    cast(round(items.net_amount * rates.rate_to_eur, 2) as decimal(12, 2)) as revenue_eur
from {{ ref('stg_orders') }} as orders
inner join {{ ref('stg_order_items') }} as items
    on orders.order_id = items.order_id
inner join {{ ref('stg_customers') }} as customers
    on orders.customer_id = customers.customer_id
inner join {{ ref('exchange_rates') }} as rates
    on orders.currency_code = rates.currency_code
    and trunc(orders.order_date, 'MM') = rates.rate_month
where orders.is_sale
