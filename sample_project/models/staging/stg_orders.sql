-- Plain table names work as well as ref() and source(): mvbuild reads the SQL and finds raw.orders.
with cleaned as (
    select
        order_id,
        customer_id,
        cast(ordered_at as date) as order_date,
        ordered_at,
        {{ clean_word('status', 'unknown') }} as status,
        coalesce({{ clean_code('currency_code') }}, 'EUR') as currency_code,
        {{ clean_word('channel', 'unknown') }} as channel
    from raw.orders
)

select
    order_id,
    customer_id,
    order_date,
    ordered_at,
    status,
    status in ('completed', 'shipped') as is_sale,
    currency_code,
    channel
from cleaned
where status <> 'test'
