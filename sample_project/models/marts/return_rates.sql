-- By the month of the sale, not of the return: a rate never goes above one.
with returned as (
    select
        trunc(orders.order_date, 'MM') as sales_month,
        returns.product_id,
        sum(returns.quantity) as units_returned
    from {{ ref('stg_returns') }} as returns
    inner join {{ ref('order_facts') }} as orders
        on returns.order_id = orders.order_id
    group by trunc(orders.order_date, 'MM'), returns.product_id
),

counted as (
    select
        sold.sales_month,
        sold.category,
        sum(sold.units_sold) as units_sold,
        sum(coalesce(returned.units_returned, 0)) as units_returned
    from {{ ref('product_sales') }} as sold
    left join returned
        on sold.sales_month = returned.sales_month
        and sold.product_id = returned.product_id
    group by sold.sales_month, sold.category
)

select
    sales_month,
    category,
    units_sold,
    units_returned,
    cast(round(cast(units_returned as decimal(12, 0)) / cast(units_sold as decimal(12, 0)), 4) as decimal(6, 4)) as return_rate
from counted
