{# Stage a snapshot's changes as a table next to it. dbt-spark makes a view with a bare name: in the catalog's
   root, which most catalogs do not allow, and the same for two snapshots of one name, which then read each
   other's rows; and it evaluates the changes again in the MERGE. #}
{% macro spark_build_snapshot_staging_table(strategy, sql, target_relation) %}
  {% set settings = sparkevolve__snapshot_settings() %}
  {% set changes = snapshot_staging_table(strategy, sql, target_relation) %}
  {% set query = adapter.storable_query(target_relation, changes, settings, adapter.target_schema(target_relation)) %}
  {% set staged = adapter.staging_relation(target_relation) %}
  {% call statement('build_snapshot_staging_relation') %}
    create table {{ staged }} using iceberg
    {{ sparkevolve__tblproperties(adapter.staging_properties()) }}
    as
    {{ query.sql }}
  {% endcall %}
  {% do return(staged) %}
{% endmacro %}


{# What dbt-spark calls to add columns. All that differs is planned and changed in one commit, before the MERGE. #}
{% macro sparkevolve__create_columns(relation, columns) %}
{% endmacro %}


{% macro sparkevolve__snapshot_merge_sql(target, source, insert_cols) -%}
  {% set base = adapter.begin_load(target) %}
  {% set load = adapter.evolve(base, target, source, sparkevolve__snapshot_settings(), sparkevolve__column_docs()) %}
  {% do sparkevolve__log_evolution(target, load) %}
  {% do sparkevolve__refresh(target) %}
  {% set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() %}
  {% do return(adapter.snapshot_statement(load, columns, config.get('dbt_valid_to_current'))) %}
{%- endmacro %}


{% macro sparkevolve__post_snapshot(staging_relation) %}
{% endmacro %}


{# A snapshot preserves: it adds what is new, keeps what is gone, and has one statement, which is atomic. #}
{% macro sparkevolve__snapshot_settings() %}
  {% set settings = sparkevolve__incremental_settings(false) %}
  {% set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() %}
  {% do settings.update({
    'strategy': 'append',
    'publish': 'direct',
    'unique_key': none,
    'add_columns': true,
    'bookkeeping': ['dbt_change_type', 'dbt_unique_key'] + sparkevolve__numbered_keys(),
    'stored_as_they_are': [columns.dbt_updated_at, columns.dbt_valid_from, columns.dbt_valid_to],
  }) %}
  {% do return(settings) %}
{% endmacro %}


{# A composite key comes as one column for each part. #}
{% macro sparkevolve__numbered_keys() %}
  {% set names = [] %}
  {% for part in sparkevolve__as_list(config.get('unique_key')) %}
    {% do names.append('dbt_unique_key_' ~ loop.index) %}
  {% endfor %}
  {% do return(names) %}
{% endmacro %}
