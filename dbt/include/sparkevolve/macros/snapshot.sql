{% materialization snapshot, adapter='sparkevolve' -%}
  {% if sparkevolve__is_plan_only() %}
    {{ return(sparkevolve__not_planned()) }}
  {% endif %}
  {% do sparkevolve__snapshot_settings() %}
  {% set target_relation = this.incorporate(type='table') %}
  {% do sparkevolve__create_missing_schema(target_relation) %}
  {% set existing_relation = sparkevolve__begin_node(target_relation) %}
  {% do adapter.batches().remove_abandoned(target_relation) %}
  {% if existing_relation is not none %}
    {% if not existing_relation.is_table %}
      {% do exceptions.relation_wrong_type(existing_relation, 'table') %}
    {% endif %}
    {% do sparkevolve__grant(target_relation, existing_relation, false) %}
    {% do adapter.valid_snapshot_target(target_relation, sparkevolve__snapshot_columns()) %}
    {% do sparkevolve__load_existing(target_relation, sparkevolve__snapshot_settings()) %}
  {% else %}
    {% set query = sparkevolve__compiled_query() %}
    {% set built = build_snapshot_table(sparkevolve__snapshot_strategy(query, false), query) %}
    {% do adapter.queries().note_columns(target_relation, built) %}
    {% do adapter.preview().refuse_warned_defaults(target_relation, sparkevolve__snapshot_settings()) %}
    {% do sparkevolve__check_described(target_relation, built) %}
    {% do sparkevolve__check_partitions(target_relation, built) %}
    {# Not CREATE OR REPLACE, as for a table: what another run has made meanwhile may have versions that no source has. #}
    {% do sparkevolve__create_table(target_relation, sparkevolve__checked_query(built)) %}
    {% do sparkevolve__rows_are_visible(target_relation) %}
    {% do adapter.load_runner(target_relation).check_creation(target_relation) %}
    {% do sparkevolve__grant_and_describe(target_relation, existing_relation, false) %}
    {% do sparkevolve__store_defaults(target_relation, sparkevolve__snapshot_settings()) %}
  {% endif %}
  {% do sparkevolve__run_post_hooks() %}
  {% do sparkevolve__store_response(target_relation) %}
  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}


{% macro sparkevolve__create_missing_schema(relation) %}
  {% if not adapter.check_schema_exists(relation.database, relation.schema) %}
    {% do adapter.create_schema(relation) %}
  {% endif %}
{% endmacro %}


{% macro sparkevolve__snapshot_columns() %}
  {% do return(config.get('snapshot_table_column_names') or get_snapshot_table_column_names()) %}
{% endmacro %}


{# dbt's SQL of what makes a row a new version; of a table that is there it asks for the columns. #}
{% macro sparkevolve__snapshot_strategy(query, exists) %}
  {% do return(strategy_dispatch(config.get('strategy'))(
    dict(model, compiled_code=query), 'snapshotted_data', 'source_data', model['config'], exists
  )) %}
{% endmacro %}


{# The snapshot's query, with columns and fields spelled and ordered as the table has them: dbt compares structs by
   position, and unites rows of both. Fields that are new in a struct are added to the table before that, and what is replaced is. #}
{% macro sparkevolve__snapshot_query(target_relation, settings, base) %}
  {% set sql = sparkevolve__compiled_query() %}
  {% set query = adapter.queries().snapshot(target_relation, sql, settings, base.table.schema()) %}
  {% if query.is_like %}
    {% do return(query) %}
  {% endif %}
  {% set shape = sparkevolve__stage(target_relation, query.without_rows) %}
  {% set conforming = adapter.load_runner().conform_snapshot(
    base, target_relation, shape, settings, query, model.unique_id, graph
  ) %}
  {% for change in conforming.changes %}
    {% do log(target_relation ~ ': ' ~ change, info=True) %}
  {% endfor %}
  {% do sparkevolve__warn(conforming.warnings) %}
  {% do sparkevolve__refresh(target_relation) %}
  {% do query.update({'sql': conforming.sql}) %}
  {% do return(query) %}
{% endmacro %}


{# The query of a snapshot's changes, which are staged as a table next to it. dbt-spark makes a view with a bare name: in
   the catalog's root, which most catalogs do not allow, and the same for two snapshots of one name, which then read
   each other's rows; and it evaluates the changes again in the MERGE. #}
{% macro sparkevolve__snapshot_changes(target_relation, settings, base) %}
  {% set table_schema = base.table.schema() %}
  {% set source = sparkevolve__snapshot_query(target_relation, settings, base) %}
  {% set strategy = sparkevolve__snapshot_strategy(source.sql, true) %}
  {% if config.get('strategy') == 'check' %}
    {% do strategy.update({
      'row_changed': adapter.queries().snapshot_row_changed(table_schema, config.get('check_cols'), source.columns)
    }) %}
  {% endif %}
  {% set changes = snapshot_staging_table(strategy, source.sql, target_relation) %}
  {% if flags.EMPTY or invocation_args_dict.get('sample') %}
    {% set changes = sparkevolve__without_deletions(changes, strategy) %}
  {% endif %}
  {% do return(adapter.queries().as_stored(target_relation, changes, settings, table_schema)) %}
{% endmacro %}


{# Under `--empty` and `--sample` dbt lets the source look as if most rows were gone, which they are not. #}
{% macro sparkevolve__without_deletions(changes, strategy) %}
  {% set is_deleted = sparkevolve__snapshot_columns().dbt_is_deleted %}
  {% do return(
    'select * from (\n' ~ changes ~ "\n) as changes where dbt_change_type <> 'delete'"
    ~ (' and ' ~ adapter.quote(is_deleted) ~ " <> 'True'" if strategy.hard_deletes == 'new_record' else '')
  ) %}
{% endmacro %}
