-- A view: cleans the raw table and stores nothing.
select
    order_id,
    customer_id,
    order_date,
    lower(status) as status,
    amount
from {{ ref('orders') }}
where order_date >= date '{{ var("first_day") }}'
