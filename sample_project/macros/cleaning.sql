{# Text as people type it -> a code: trimmed, upper case, NULL if nothing is left. #}
{% macro clean_code(column) -%}
    nullif(upper(trim({{ column }})), '')
{%- endmacro %}

{# Text as people type it -> a word: trimmed, lower case, `default` if nothing is left. #}
{% macro clean_word(column, default) -%}
    coalesce(nullif(lower(trim({{ column }})), ''), '{{ default }}')
{%- endmacro %}
