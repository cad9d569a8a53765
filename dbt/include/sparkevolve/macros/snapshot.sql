{# Stage a snapshot's changes as a table next to it. dbt-spark makes a view with a bare name: in the catalog's
   root, which most catalogs do not allow, and the same for two snapshots of one name, which then read each
   other's rows; and it evaluates the changes again in the MERGE. #}
{% macro spark_build_snapshot_staging_table(strategy, sql, target_relation) %}
  {% set staged = adapter.staging_relation(target_relation) %}
  {% call statement('build_snapshot_staging_relation') %}
    create table {{ staged }} using iceberg
    {{ sparkevolve__tblproperties(adapter.staging_properties()) }}
    as
    {{ snapshot_staging_table(strategy, sql, target_relation) }}
  {% endcall %}
  {% do return(staged) %}
{% endmacro %}


{% macro sparkevolve__post_snapshot(staging_relation) %}
{% endmacro %}


{% macro sparkevolve__snapshot_merge_sql(target, source, insert_cols) -%}
  {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- set current = config.get('dbt_valid_to_current') -%}
  merge into {{ target }} as DBT_INTERNAL_DEST
  using {{ source }} as DBT_INTERNAL_SOURCE
  on DBT_INTERNAL_SOURCE.{{ columns.dbt_scd_id }} = DBT_INTERNAL_DEST.{{ columns.dbt_scd_id }}
  when matched
    and (DBT_INTERNAL_DEST.{{ columns.dbt_valid_to }} is null
    {%- if current %} or DBT_INTERNAL_DEST.{{ columns.dbt_valid_to }} = {{ current }}{% endif %})
    and DBT_INTERNAL_SOURCE.dbt_change_type in ('update', 'delete')
    then update set {{ columns.dbt_valid_to }} = DBT_INTERNAL_SOURCE.{{ columns.dbt_valid_to }}
  when not matched
    and DBT_INTERNAL_SOURCE.dbt_change_type = 'insert'
    then insert ({{ insert_cols | join(', ') }})
    values (
      {%- for name in insert_cols -%}
        DBT_INTERNAL_SOURCE.{{ name }}{{ ', ' if not loop.last }}
      {%- endfor -%}
    )
{%- endmacro %}
