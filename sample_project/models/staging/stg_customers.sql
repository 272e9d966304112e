-- One row per customer: the source delivers a customer again when something about them changes.
with newest as (
    select
        customer_id,
        trim(full_name) as full_name,
        lower(trim(email)) as email,
        {{ clean_code('country_code') }} as country_code,
        signed_up_on,
        updated_at,
        row_number() over (partition by customer_id order by updated_at desc, email) as age_rank
    from {{ source('raw', 'customers') }}
)

select
    newest.customer_id,
    newest.full_name,
    case when newest.email like '%_@_%._%' then newest.email end as email,
    coalesce(countries.country_code, '{{ var("unknown_country") }}') as country_code,
    newest.signed_up_on,
    newest.updated_at
from newest
left join {{ ref('countries') }} as countries
    on newest.country_code = countries.country_code
where newest.age_rank = 1
