{# A kind of test of this project. In YAML: `- not_before: {day: 2026-01-01}`. #}
{% test not_before(model, column_name, day) %}
select *
from {{ model }}
where {{ column_name }} < date '{{ day }}'
{% endtest %}
