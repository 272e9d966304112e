{# An amount as a whole number of cents. #}
{% macro cents(column) %}cast(round({{ column }} * {{ var('cents_of') }}) as bigint){% endmacro %}
