-- One row per month for the board, from four materialized views that share their ancestors.
with revenue as (
    select
        trunc(order_date, 'MM') as sales_month,
        sum(orders) as orders,
        sum(units) as units,
        cast(sum(revenue_eur) as decimal(18, 2)) as revenue_eur
    from {{ ref('daily_revenue') }}
    group by trunc(order_date, 'MM')
),

new_customers as (
    select
        trunc(first_order_on, 'MM') as sales_month,
        count(*) as new_customers
    from {{ ref('customer_lifetime_value') }}
    where first_order_on is not null
    group by trunc(first_order_on, 'MM')
),

best_products as (
    select sales_month, product_name
    from {{ ref('product_ranking') }}
    where rank_in_month = 1
),

returned as (
    select
        sales_month,
        sum(units_returned) as units_returned
    from {{ ref('return_rates') }}
    group by sales_month
)

select
    revenue.sales_month,
    revenue.orders,
    revenue.units,
    revenue.revenue_eur,
    lag(revenue.revenue_eur) over (order by revenue.sales_month) as previous_revenue_eur,
    cast(round(revenue.revenue_eur / revenue.orders, 2) as decimal(12, 2)) as average_order_eur,
    coalesce(new_customers.new_customers, 0) as new_customers,
    best_products.product_name as best_product,
    returned.units_returned
from revenue
inner join best_products
    on revenue.sales_month = best_products.sales_month
inner join returned
    on revenue.sales_month = returned.sales_month
left join new_customers
    on revenue.sales_month = new_customers.sales_month
