{# Amounts with at most two digits after the point. #}
{% test whole_cents(model, column_name) %}
select *
from {{ model }}
where {{ column_name }} <> round({{ column_name }}, 2)
{% endtest %}
