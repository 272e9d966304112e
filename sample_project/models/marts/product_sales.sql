{{ config(partition_by=['month(sales_month)']) }}

-- The loop writes one column for each channel of mvbuild.yml.
select
    trunc(sales.order_date, 'MM') as sales_month,
    sales.product_id,
    products.product_name,
    initcap(trim(products.category)) as category,
    sum(sales.quantity) as units_sold,
    {% for channel in var('channels') -%}
    cast(sum(case when sales.channel = '{{ channel }}' then sales.revenue_eur else 0 end) as decimal(18, 2)) as {{ channel }}_revenue_eur,
    {% endfor -%}
    cast(sum(sales.revenue_eur) as decimal(18, 2)) as revenue_eur
from {{ ref('sales_lines') }} as sales
inner join {{ source('raw', 'products') }} as products
    on sales.product_id = products.product_id
group by
    trunc(sales.order_date, 'MM'),
    sales.product_id,
    products.product_name,
    initcap(trim(products.category))
