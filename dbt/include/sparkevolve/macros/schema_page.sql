{# `dbt run-operation schema_page`: one HTML file with the columns of each incremental model and snapshot over time, or
   of those in `models`; in dbt's target folder, or at `path`. #}
{% macro schema_page(models=none, path=none) %}
  {% if not execute %}
    {% do return('') %}
  {% endif %}
  {% set args = sparkevolve__arguments('schema_page', dict(kwargs, models=models, path=path)) %}
  {% set written = adapter.schema_page(adapter.operations().nodes_named(graph, args.models), args.path) %}
  {% do sparkevolve__say(tojson(written.data) if flags.LOG_FORMAT == 'json' else written.text) %}
{% endmacro %}
