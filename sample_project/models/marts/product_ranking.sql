-- Plain name: mart.product_sales is the materialized view of this project, so this one is refreshed after it.
select
    sales_month,
    category,
    product_id,
    product_name,
    revenue_eur,
    row_number() over (partition by sales_month, category order by revenue_eur desc, product_id) as rank_in_category,
    row_number() over (partition by sales_month order by revenue_eur desc, product_id) as rank_in_month,
    cast(
        round(revenue_eur / nullif(sum(revenue_eur) over (partition by sales_month, category), 0), 4) as decimal(6, 4)
    ) as share_of_category,
    lag(revenue_eur) over (partition by product_id order by sales_month) as previous_revenue_eur
from mart.product_sales
