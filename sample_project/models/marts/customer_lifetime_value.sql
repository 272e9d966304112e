{{ config(partition_by=['bucket(4, customer_id)'], sort_by=['customer_id']) }}

-- Money in (sales) and money out (refunds), one under the other, then summed per customer.
with movements as (
    select
        customer_id,
        order_id,
        order_date,
        revenue_eur as sales_eur,
        cast(0 as decimal(18, 2)) as refunds_eur
    from {{ ref('order_facts') }}

    union all

    select
        sales.customer_id,
        sales.order_id,
        sales.order_date,
        cast(0 as decimal(18, 2)) as sales_eur,
        cast(round(sales.revenue_eur * returns.quantity / sales.quantity, 2) as decimal(18, 2)) as refunds_eur
    from {{ ref('stg_returns') }} as returns
    inner join {{ ref('sales_lines') }} as sales
        on returns.order_id = sales.order_id
        and returns.product_id = sales.product_id
),

totals as (
    select
        customer_id,
        count(distinct order_id) as orders,
        min(order_date) as first_order_on,
        max(order_date) as last_order_on,
        cast(sum(sales_eur) as decimal(18, 2)) as sales_eur,
        cast(sum(refunds_eur) as decimal(18, 2)) as refunds_eur,
        cast(sum(sales_eur) - sum(refunds_eur) as decimal(18, 2)) as lifetime_value_eur
    from movements
    group by customer_id
)

select
    customers.customer_id,
    customers.full_name,
    customers.country_code,
    customers.signed_up_on,
    coalesce(totals.orders, 0) as orders,
    totals.first_order_on,
    totals.last_order_on,
    coalesce(totals.sales_eur, 0) as sales_eur,
    coalesce(totals.refunds_eur, 0) as refunds_eur,
    coalesce(totals.lifetime_value_eur, 0) as lifetime_value_eur,
    case
        when totals.lifetime_value_eur >= {{ var('gold_from_eur') }} then 'gold'
        when totals.lifetime_value_eur >= {{ var('silver_from_eur') }} then 'silver'
        when totals.orders > 0 then 'bronze'
        else 'none'
    end as tier
from {{ ref('stg_customers') }} as customers
left join totals
    on customers.customer_id = totals.customer_id
