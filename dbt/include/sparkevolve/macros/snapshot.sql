{% materialization snapshot, adapter='sparkevolve' -%}
  {% if sparkevolve__is_plan_only() %}
    {{ return(sparkevolve__not_planned()) }}
  {% endif %}
  {% do sparkevolve__snapshot_settings() %}
  {% set target_relation = this.incorporate(type='table') %}
  {% do sparkevolve__create_missing_schema(target_relation) %}
  {% set existing_relation = sparkevolve__begin_node(target_relation) %}
  {% do adapter.drop_abandoned_staging(target_relation) %}
  {% set is_new = existing_relation is none %}
  {% if not is_new %}
    {% do sparkevolve__grant(target_relation, existing_relation, false) %}
  {% endif %}
  {% set final_sql = sparkevolve__snapshot_sql(target_relation, existing_relation) %}
  {% call statement('main') %}
    {{ final_sql }}
  {% endcall %}
  {% do sparkevolve__rows_are_visible(target_relation, only_hooks=not is_new) %}
  {% if is_new %}
    {% do sparkevolve__grant_and_describe(target_relation, existing_relation, false) %}
  {% endif %}
  {% do sparkevolve__run_post_hooks() %}
  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}


{% macro sparkevolve__create_missing_schema(relation) %}
  {% if not adapter.check_schema_exists(relation.database, relation.schema) %}
    {% do adapter.create_schema(relation) %}
  {% endif %}
{% endmacro %}


{# The statement that makes the snapshot's table, or brings what has changed into it. #}
{% macro sparkevolve__snapshot_sql(target_relation, existing_relation) %}
  {% if existing_relation is not none and not existing_relation.is_table %}
    {% do exceptions.relation_wrong_type(existing_relation, 'table') %}
  {% endif %}
  {% set query = sparkevolve__compiled_query() %}
  {% set strategy = strategy_dispatch(config.get('strategy'))(
    dict(model, compiled_code=query), 'snapshotted_data', 'source_data', model['config'], existing_relation is not none
  ) %}
  {% if existing_relation is none %}
    {% do return(create_table_as(False, target_relation, build_snapshot_table(strategy, query))) %}
  {% endif %}
  {% set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() %}
  {% do adapter.valid_snapshot_target(target_relation, columns) %}
  {% set staged = sparkevolve__stage_snapshot(strategy, query, target_relation) %}
  {% do return(snapshot_merge_sql(target=target_relation, source=staged, insert_cols=[])) %}
{% endmacro %}


{# Stage a snapshot's changes as a table next to it. dbt-spark makes a view with a bare name: in the catalog's
   root, which most catalogs do not allow, and the same for two snapshots of one name, which then read each
   other's rows; and it evaluates the changes again in the MERGE. #}
{% macro sparkevolve__stage_snapshot(strategy, sql, target_relation) %}
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


{% macro sparkevolve__snapshot_merge_sql(target, source, insert_cols) -%}
  {% set base = adapter.begin_load(target) %}
  {% set load = adapter.evolve(base, target, source, sparkevolve__snapshot_settings(), sparkevolve__column_docs()) %}
  {% do sparkevolve__log_evolution(target, load) %}
  {% do persist_docs(target, model) %}
  {% do sparkevolve__refresh(target) %}
  {% set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() %}
  {% do return(adapter.snapshot_statement(load, columns, config.get('dbt_valid_to_current'))) %}
{%- endmacro %}


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
