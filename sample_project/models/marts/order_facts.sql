{{ config(
    partition_by=['month(order_date)'],
    sort_by=['order_date', 'order_id'],
    table_properties={'write.parquet.compression-codec': 'zstd'},
) }}

select
    order_id,
    order_date,
    customer_id,
    country_code,
    channel,
    count(*) as line_count,
    sum(quantity) as units,
    cast(sum(revenue_eur) as decimal(18, 2)) as revenue_eur
from {{ ref('sales_lines') }}
group by order_id, order_date, customer_id, country_code, channel
