-- Customers cannot return more than they bought.
select sales_month, category, units_sold, units_returned, return_rate
from {{ ref('return_rates') }}
where return_rate not between 0 and 1
