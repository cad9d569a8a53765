{# Make a seed's table of all its rows in one commit: a reader, or a run that is stopped, meets the old table or the
   new one. Rows that are too many for one statement are staged first. Returns the SQL for dbt's compiled file. #}
{% macro sparkevolve__replace_seed(target_relation, existing_relation, agate_table) %}
  {% set queries = adapter.clauses().seed_queries(agate_table, model['config'].get('column_types', {})) %}
  {% do sparkevolve__check_frozen(existing_relation, queries[0]) %}
  {% set clauses = sparkevolve__seed_clauses() %}
  {% do sparkevolve__refuse_hidden(target_relation, clauses) %}
  {% if sparkevolve__is_managed(target_relation) %}
    {# The only one of the two by which a seed is divided. #}
    {% do adapter.queries().check_partitions(target_relation, queries[0], sparkevolve__partition_by(), none, none) %}
  {% endif %}
  {% do adapter.batches().remove_abandoned(target_relation) %}
  {% set is_replaced = existing_relation is none or existing_relation.is_iceberg %}
  {% set query = queries[0] %}
  {% if queries | length > 1 or not is_replaced %}
    {% set staged = adapter.batches().new_name(target_relation) %}
    {% do sparkevolve__create_seed(
      staged, agate_table, sparkevolve__staging_clauses(staged, adapter.batches().properties())
    ) %}
    {% do sparkevolve__insert_seed(staged, queries) %}
    {% set query = 'select * from ' ~ staged %}
  {% endif %}
  {% if not is_replaced %}
    {% do adapter.drop_relation(existing_relation) %}
  {% endif %}
  {% do sparkevolve__begin_creation(target_relation, query, clauses) %}
  {% set sql %}
    create or replace table {{ target_relation }}
    {{ clauses }}
    as
    {{ query }}
  {% endset %}
  {% do adapter.add_query(sql, abridge_sql_log=True) %}
  {{ return(sql) }}
{% endmacro %}


{% macro sparkevolve__seed_clauses() %}
  {{ file_format_clause() }}
  {{ tblproperties_clause() }}
  {{ partition_cols(label="partitioned by") }}
  {{ location_clause() }}
  {{ comment_clause() }}
{% endmacro %}


{% macro sparkevolve__staging_clauses(staged, properties) -%}
    using iceberg
    {{ sparkevolve__tblproperties(properties) }}
    {{ sparkevolve__location_sql(adapter.clauses().location(staged)) }}
{%- endmacro %}


{% macro sparkevolve__create_seed(relation, agate_table, clauses) %}
  {%- set column_types = model['config'].get('column_types', {}) -%}
  {% set sql %}
    create table {{ relation }} (
      {%- for name in agate_table.column_names %}
      {%- set type = column_types.get(name) or adapter.convert_type(agate_table, loop.index0) %}
      {{ adapter.quote(name) }} {{ adapter.clauses().type_name(name, type) }}{{ ',' if not loop.last }}
      {%- endfor %}
    )
    {{ clauses }}
  {% endset %}
  {% call statement('create_seed') -%}
    {{ sql }}
  {%- endcall %}
  {{ return(sql) }}
{% endmacro %}


{% macro sparkevolve__insert_seed(relation, queries) %}
  {% for query in queries %}
    {% do adapter.add_query('insert into ' ~ relation ~ '\n' ~ query, abridge_sql_log=True) %}
  {% endfor %}
{% endmacro %}


{# For what is not an Iceberg table of a catalog in the profile: it is dropped, and recreated. #}
{% macro sparkevolve__create_csv_table(model, agate_table) %}
  {{ return(sparkevolve__create_seed(this, agate_table, sparkevolve__seed_clauses())) }}
{% endmacro %}


{% macro sparkevolve__load_csv_rows(model, agate_table) %}
  {% set queries = adapter.clauses().seed_queries(agate_table, model['config'].get('column_types', {})) %}
  {% do sparkevolve__insert_seed(this, queries) %}
  {{ return(queries[0]) }}
{% endmacro %}
