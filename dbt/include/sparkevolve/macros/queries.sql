{# Where dbt puts a model's or a test's query inside another: one that ends in a semicolon or a comment would break it. #}

{% macro sparkevolve__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if temporary -%}
    {{ create_temporary_view(relation, adapter.clauses().one_statement(compiled_code)) }}
  {%- else -%}
    {%- set sql = sparkevolve__checked_query(compiled_code) -%}
    {%- set clauses = sparkevolve__creation_clauses() -%}
    {%- do sparkevolve__begin_creation(relation, sql, clauses) -%}
    create {{ 'or replace ' if sparkevolve__file_format() in ['delta', 'iceberg'] }}table {{ relation }}
    {{ clauses }}
    as
    {{ sql }}
  {%- endif -%}
{%- endmacro %}


{# A query that keeps to the node's contract, if there is one. #}
{% macro sparkevolve__checked_query(compiled_code) %}
  {% set sql = adapter.clauses().one_statement(compiled_code) %}
  {% if config.get('contract').enforced %}
    {% do get_assert_columns_equivalent(sql) %}
    {% set sql = get_select_subquery(sql) %}
  {% endif %}
  {% do return(sql) %}
{% endmacro %}


{% macro sparkevolve__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) -%}
  {{ default__get_test_sql(adapter.clauses().one_statement(main_sql), fail_calc, warn_if, error_if, limit) }}
{%- endmacro %}


{% macro sparkevolve__get_unit_test_sql(main_sql, expected_fixture_sql, expected_column_names) -%}
  {{ default__get_unit_test_sql(adapter.clauses().one_statement(main_sql), expected_fixture_sql, expected_column_names) }}
{%- endmacro %}


{# What `dbt show` asks. #}
{% macro sparkevolve__get_limit_sql(sql, limit) -%}
  {{ default__get_limit_sql(adapter.clauses().one_statement(sql), limit) }}
{%- endmacro %}
