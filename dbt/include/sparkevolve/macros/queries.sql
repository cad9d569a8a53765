{# Where dbt puts a model's or a test's query inside another: one that ends in a semicolon or a comment would break it. #}

{% macro sparkevolve__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {{ spark__create_table_as(temporary, relation, adapter.one_statement(compiled_code), language) }}
{%- endmacro %}


{% macro sparkevolve__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) -%}
  {{ default__get_test_sql(adapter.one_statement(main_sql), fail_calc, warn_if, error_if, limit) }}
{%- endmacro %}


{% macro sparkevolve__get_unit_test_sql(main_sql, expected_fixture_sql, expected_column_names) -%}
  {{ default__get_unit_test_sql(adapter.one_statement(main_sql), expected_fixture_sql, expected_column_names) }}
{%- endmacro %}


{# What `dbt show` asks. #}
{% macro sparkevolve__get_limit_sql(sql, limit) -%}
  {{ default__get_limit_sql(adapter.one_statement(sql), limit) }}
{%- endmacro %}
