-- Only returns of something that was really ordered; dates come in two formats, or as 'unknown'.
select
    returns.return_id,
    returns.order_id,
    returns.product_id,
    coalesce(
        try_cast(returns.returned_on as date),
        cast(try_to_timestamp(returns.returned_on, 'dd.MM.yyyy') as date)
    ) as returned_on,
    returns.quantity,
    {{ clean_word('returns.reason', 'not given') }} as reason
from {{ source('raw', 'returns') }} as returns
where exists (
    select 1
    from {{ ref('stg_order_items') }} as items
    where items.order_id = returns.order_id
      and items.product_id = returns.product_id
)
