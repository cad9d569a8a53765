{# `dbt run-operation schema_history --args '{model: orders}'`: every schema that a model's table has had. #}
{% macro schema_history(model) %}
  {% set found = [] %}
  {% for node in graph.nodes.values() if node.resource_type == 'model' and node.name == model %}
    {% do found.append(node) %}
  {% endfor %}
  {% if not found %}
    {% do exceptions.raise_compiler_error("There is no model named '" ~ model ~ "' in this project.") %}
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
      {% do log('  columns now: ' ~ sparkevolve__columns_text(current.columns), info=True) %}
    {% endif %}
  {% endfor %}
{% endmacro %}


{% macro sparkevolve__columns_text(columns) %}
  {% set texts = [] %}
  {% for column in columns %}
    {% do texts.append(column.name ~ ' (' ~ column.id ~ ') ' ~ column.type) %}
  {% endfor %}
  {% do return(texts | join(', ')) %}
{% endmacro %}
