{# `dbt run-operation replay_dead_letters --args '{model: orders}'`: load the rows that were set aside again, once the cause
   is mended; see docs/dead-letters.md. #}
{% macro replay_dead_letters(
  model=none, where=none, invocation_id=none, message_ids=none, limit=none, overwrite=none, plan_only=none
) %}
  {% if not execute %}
    {% do return('') %}
  {% endif %}
  {% set args = sparkevolve__arguments('replay_dead_letters', dict(
    kwargs, model=model, where=where, invocation_id=invocation_id, message_ids=message_ids, limit=limit,
    overwrite=overwrite, plan_only=plan_only
  )) %}
  {% set node = sparkevolve__node_named(args.model) %}
  {% set replayed = adapter.load_runner(node.relation).replay(node, args) %}
  {% if flags.LOG_FORMAT == 'json' %}
    {% do sparkevolve__say(tojson(replayed.data)) %}
  {% else %}
    {% for line in replayed.lines %}
      {% do sparkevolve__say(line) %}
    {% endfor %}
  {% endif %}
{% endmacro %}
