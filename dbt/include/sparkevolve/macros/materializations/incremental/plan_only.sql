{# `dbt run --vars 'sparkevolve_plan_only: true'`: say what would happen to each incremental model, change nothing. #}

{% macro sparkevolve__is_plan_only() %}
  {% do return(var('sparkevolve_plan_only', false) | as_bool) %}
{% endmacro %}


{% macro sparkevolve__print_plan(target_relation, settings, is_new) %}
  {% if is_new %}
    {% set plan = {'relation': target_relation | string, 'creates': true} %}
    {% set text = target_relation ~ ': would be created from the model' %}
  {% else %}
    {% set columns = adapter.target_columns(target_relation) %}
    {% set staged = sparkevolve__stage_batch(target_relation, settings, columns, with_rows=false) %}
    {% set plan = adapter.plan(target_relation, staged, settings, sparkevolve__column_docs()) %}
    {% set text = adapter.plan_text(plan) %}
  {% endif %}
  {% do log(tojson(plan) if flags.LOG_FORMAT == 'json' else text, info=True) %}
  {% if plan.refusals %}
    {% do exceptions.raise_compiler_error('The run would be refused: ' ~ plan.refusals | join(' ')) %}
  {% endif %}
  {% do sparkevolve__nothing_run('planned, nothing was changed') %}
{% endmacro %}


{% macro sparkevolve__nothing_run(message) %}
  {% call noop_statement('main', message, 'OK', 0) %}
    -- {{ message }}
  {% endcall %}
{% endmacro %}
