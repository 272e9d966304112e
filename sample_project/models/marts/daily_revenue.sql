{{ config(partition_by=['month(order_date)']) }}

select
    sales.order_date,
    sales.country_code,
    countries.country_name,
    countries.region,
    count(distinct sales.order_id) as orders,
    sum(sales.quantity) as units,
    cast(sum(sales.revenue_eur) as decimal(18, 2)) as revenue_eur
from {{ ref('sales_lines') }} as sales
inner join {{ ref('countries') }} as countries
    on sales.country_code = countries.country_code
group by sales.order_date, sales.country_code, countries.country_name, countries.region
