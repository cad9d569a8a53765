{# `dbt run --vars 'sparkevolve_plan_only: true'`: say what would happen to each incremental model, change nothing. #}

{% macro sparkevolve__is_plan_only() %}
  {% do return(var('sparkevolve_plan_only', false) | as_bool) %}
{% endmacro %}


{% macro sparkevolve__print_plan(target_relation, settings, is_new) %}
  {% if is_new %}
    {% set plan = sparkevolve__plan_new_table(target_relation, settings) %}
  {% else %}
    {% set table_schema = adapter.target_schema(target_relation) %}
    {% set staged = sparkevolve__stage_batch(target_relation, settings, table_schema, with_rows=false) %}
    {% set plan = adapter.plan(target_relation, staged, settings, sparkevolve__column_docs()) %}
  {% endif %}
  {% do log(tojson(plan) if flags.LOG_FORMAT == 'json' else adapter.plan_text(plan), info=True) %}
  {% if plan.refusals %}
    {% do exceptions.raise_compiler_error('The run would be refused: ' ~ plan.refusals | join(' ')) %}
  {% endif %}
  {% if not is_new %}
    {% do sparkevolve__check_schema_change(target_relation, staged, settings) %}
  {% elif plan.is_analysed and config.get('contract').enforced %}
    {% do get_assert_columns_equivalent(compiled_code) %}
  {% endif %}
  {% do sparkevolve__nothing_run('planned, nothing was changed') %}
{% endmacro %}


{# A full refresh takes away what the model no longer returns. #}
{% macro sparkevolve__plan_new_table(target_relation, settings) %}
  {% set plan = adapter.plan_new_table(target_relation, sparkevolve__compiled_query(), settings) %}
  {% set existing_relation = load_cached_relation(this) %}
  {% if existing_relation is not none and plan.columns %}
    {% set old_names = adapter.get_columns_in_relation(existing_relation) | map(attribute='name') | list %}
    {% do plan.update({'loses': sparkevolve__diff_columns(plan.columns, old_names).removed}) %}
  {% endif %}
  {% do return(plan) %}
{% endmacro %}


{% macro sparkevolve__nothing_run(message) %}
  {% call noop_statement('main', message, 'OK', 0) %}
    -- {{ message }}
  {% endcall %}
{% endmacro %}
