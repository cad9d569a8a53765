{% materialization seed, adapter='sparkevolve' -%}
  {% set agate_table = load_agate_table() %}
  {# dbt asks for a seed's rows afterwards. #}
  {% do store_result('agate_table', response='OK', agate_table=agate_table) %}
  {% if sparkevolve__is_plan_only() %}
    {{ return(sparkevolve__not_planned()) }}
  {% endif %}
  {% set full_refresh = should_full_refresh() %}
  {% set target_relation = this.incorporate(type='table') %}
  {% set existing_relation = sparkevolve__begin_node(target_relation) %}
  {% if existing_relation is not none and existing_relation.is_view %}
    {% do exceptions.raise_compiler_error("Cannot seed to '" ~ existing_relation ~ "', it is a view") %}
  {% endif %}

  {% do sparkevolve__check_described(target_relation, '', agate_table.column_names | list) %}
  {% do adapter.preview().refuse_warned_losses(
    target_relation, '', agate_table.column_names | list, 'the CSV file'
  ) %}
  {% set count = agate_table.rows | length %}
  {% if sparkevolve__is_managed(target_relation) %}
    {% set create, insert = sparkevolve__replace_seed(target_relation, existing_relation, agate_table), '' %}
  {% else %}
    {% if existing_relation is not none %}
      {% set queries = adapter.clauses().seed_queries(agate_table, model['config'].get('column_types', {})) %}
      {% do sparkevolve__check_frozen(existing_relation, queries[0]) %}
      {% set create = reset_csv_table(model, full_refresh, existing_relation, agate_table) %}
    {% else %}
      {% set create = create_csv_table(model, agate_table) %}
    {% endif %}
    {% set insert = load_csv_rows(model, agate_table) if count else '' %}
  {% endif %}
  {% call noop_statement('main', 'OK', 'CREATE' if full_refresh else 'INSERT', count) %}
    {{ get_csv_sql(create, insert) }};
  {% endcall %}

  {% do sparkevolve__rows_are_visible(target_relation) %}
  {% do sparkevolve__unset_gone_metrics(target_relation) %}
  {% do sparkevolve__grant_and_describe(target_relation, existing_relation, full_refresh) %}
  {% do sparkevolve__run_post_hooks() %}
  {% do sparkevolve__store_response(target_relation, count, 'the CSV file') %}
  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}
