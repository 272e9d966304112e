-- Lines with a quantity of zero or less are input errors. Discounts come as '10', '10%', 'none' or not at all.
with cleaned as (
    select
        order_id,
        line_number,
        product_id,
        quantity,
        unit_price,
        coalesce(try_cast(replace(discount_percent, '%', '') as decimal(5, 2)), 0) as discount_percent
    from {{ source('raw', 'order_items') }}
    where quantity > 0
)

select
    order_id,
    line_number,
    product_id,
    quantity,
    unit_price,
    discount_percent,
    cast(round(quantity * unit_price * (100 - discount_percent) / 100, 2) as decimal(12, 2)) as net_amount
from cleaned
