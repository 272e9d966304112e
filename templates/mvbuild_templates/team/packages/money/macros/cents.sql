{# Turns an amount into whole cents. #}
{% macro cents(column) %}cast(round({{ column }} * {{ var('cents_of') }}) as bigint){% endmacro %}
