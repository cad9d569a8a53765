{# `dbt run-operation restore_column --args '{model: orders, column: note, field_id: 2}'`: put a column that somebody
   dropped back under its old field id, so that old values are read again. The plan is shown first; with
   `plan_only: true` nothing else happens. #}
{% macro restore_column(model=none, column=none, field_id=none, plan_only=none) %}
  {% if not execute %}
    {% do return('') %}
  {% endif %}
  {% set given = dict(kwargs, model=model, column=column, field_id=field_id, plan_only=plan_only) %}
  {% set args = sparkevolve__arguments('restore_column', given) %}
  {% set node = sparkevolve__node_named(args.model) %}
  {% set is_plan = args.plan_only %}
  {% do sparkevolve__show_restore(adapter.restore_column(node, args, plan_only=true), is_plan, args) %}
  {% if not is_plan %}
    {% if sparkevolve__freezes_schema() %}
      {% do exceptions.raise_compiler_error(
        'sparkevolve_freeze_schema is true, so nothing was restored in ' ~ node.relation ~ '.'
      ) %}
    {% endif %}
    {# Before the commit as well: where Spark cannot be reached, or cannot read the table, nothing is to be restored. #}
    {% do sparkevolve__refresh(node.relation) %}
    {% set restored = adapter.restore_column(node, args, plan_only=false) %}
    {% do sparkevolve__show_restored(restored) %}
    {% do sparkevolve__refresh(node.relation) %}
  {% endif %}
{% endmacro %}


{% macro sparkevolve__show_restore(planned, is_plan, args) %}
  {% if flags.LOG_FORMAT == 'json' %}
    {% do sparkevolve__say(tojson(planned.data)) %}
  {% else %}
    {% do sparkevolve__say(planned.relation) %}
    {% for line in planned.lines %}
      {% do sparkevolve__say('  ' ~ line) %}
    {% endfor %}
    {% if is_plan %}
      {% do sparkevolve__say('Nothing was changed. To do it: ' ~ planned.command(args.model)) %}
    {% endif %}
  {% endif %}
{% endmacro %}


{% macro sparkevolve__show_restored(restored) %}
  {% if flags.LOG_FORMAT == 'json' %}
    {% do sparkevolve__say(tojson(restored.data)) %}
  {% else %}
    {% do sparkevolve__say('Done: ' ~ restored.data.column ~ ' is back as field ' ~ restored.data.field_id ~ ', in schema '
              ~ restored.schema_id ~ '.') %}
  {% endif %}
{% endmacro %}
