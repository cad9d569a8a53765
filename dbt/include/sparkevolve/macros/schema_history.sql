{# `dbt run-operation schema_history --args '{model: orders}'`: every schema that the table of a model has had; a
   snapshot or a seed will do, too. #}
{% macro schema_history(model=none) %}
  {% if not model %}
    {% do exceptions.raise_compiler_error("Name a model, snapshot or seed: --args '{model: orders}'.") %}
  {% endif %}
  {% set found = [] %}
  {% for node in graph.nodes.values() if node.resource_type in ['model', 'snapshot', 'seed'] and node.name == model %}
    {% do found.append(node) %}
  {% endfor %}
  {% if not found %}
    {% do exceptions.raise_compiler_error(
      "There is no model, snapshot or seed named '" ~ model ~ "' in this project."
    ) %}
  {% endif %}
  {% for node in found %}
    {% set relation = api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias) %}
    {% set history = adapter.schema_history(relation) %}
    {% if flags.LOG_FORMAT == 'json' %}
      {% do log(tojson({'relation': relation | string, 'schemas': history}), info=True) %}
    {% else %}
      {% do log(relation | string, info=True) %}
      {% for schema in history %}
        {% do log('  schema ' ~ schema.schema_id ~ (' (current)' if schema.is_current) ~ ', ' ~
                  (schema.at or 'time not known') ~ ', ' ~
                  ('dbt run ' ~ schema.invocation_id ~ ', source ' ~ schema.source if schema.invocation_id
                   else 'as the table was created' if loop.first and schema.schema_id == 0
                   else 'no run of sparkevolve has recorded it'),
                  info=True) %}
        {% for change in schema.changes %}
          {% do log('    ' ~ change, info=True) %}
        {% endfor %}
      {% endfor %}
      {% set current = history | selectattr('is_current') | first %}
      {% do log('  columns now:', info=True) %}
      {% for column in current.columns %}
        {% do log('    ' ~ adapter.quote(column.name) ~ ' (' ~ column.id ~ ') ' ~ column.type, info=True) %}
      {% endfor %}
    {% endif %}
  {% endfor %}
{% endmacro %}
