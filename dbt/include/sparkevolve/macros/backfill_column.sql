{# `dbt run-operation backfill_column --args '{model: orders, column: status, value: "upper(state)"}'`: fill a column of
   rows that are there, batch by batch; see docs/backfill.md. #}
{% macro backfill_column(
  model=none, column=none, value=none, where=none, batch_by=none, rows_per_batch=none, pause_seconds=none,
  max_batches=none, only_null=none, plan_only=none, restart=none
) %}
  {% if not execute %}
    {% do return('') %}
  {% endif %}
  {% set args = sparkevolve__arguments('backfill_column', dict(
    kwargs, model=model, column=column, value=value, where=where, batch_by=batch_by, rows_per_batch=rows_per_batch,
    pause_seconds=pause_seconds, max_batches=max_batches, only_null=only_null, plan_only=plan_only, restart=restart
  )) %}
  {% set node = sparkevolve__node_named(args.model) %}
  {% set backfill = adapter.load_runner(node.relation).backfill(node, args) %}
  {% set found = backfill.plan() if args.plan_only else backfill.run(log) %}
  {% if flags.LOG_FORMAT == 'json' %}
    {% do sparkevolve__say(tojson(found.data)) %}
  {% else %}
    {% for line in found.lines %}
      {% do sparkevolve__say(line) %}
    {% endfor %}
  {% endif %}
  {# Once the user has been told: who is told nothing calls it again, and must not have the rows filled twice. #}
  {% if not args.plan_only %}
    {% do backfill.forget() %}
  {% endif %}
{% endmacro %}
