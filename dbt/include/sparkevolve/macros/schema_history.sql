{# `dbt run-operation schema_history --args '{model: orders}'`: every schema that the table of a model has had; a
   snapshot or a seed will do, too. #}
{% macro schema_history(model=none) %}
  {% if not execute %}
    {% do return('') %}
  {% endif %}
  {% set args = sparkevolve__arguments('schema_history', dict(kwargs, model=model)) %}
  {% set node = sparkevolve__node_named(args.model) %}
  {% set history = adapter.schema_history(node.relation) %}
  {% set letters = sparkevolve__letters_by_run(node) %}
  {% if flags.LOG_FORMAT == 'json' %}
    {% set data = {'relation': node.relation | string, 'schemas': history} %}
    {% do sparkevolve__say(tojson(dict(data, dead_letters=letters) if letters else data)) %}
  {% else %}
    {% do sparkevolve__say(node.relation | string) %}
    {% for schema in history %}
      {% do sparkevolve__say('  schema ' ~ schema.schema_id ~ (' (current)' if schema.is_current) ~ ', ' ~
                (schema.at or 'time not known') ~ ', ' ~
                ('dbt run ' ~ schema.invocation_id ~ (', source ' ~ schema.source if schema.source else '')
                 if schema.invocation_id
                 else 'as the table was created' if loop.first and schema.schema_id == 0
                 else 'no run of sparkevolve has recorded it')) %}
      {% for change in schema.changes %}
        {% do sparkevolve__say('    ' ~ change) %}
      {% endfor %}
      {% for shape in schema.shapes or [] %}
        {% do sparkevolve__say('    also loaded from source ' ~ shape.source ~ ', since ' ~ shape.at ~ ' (dbt run ' ~
                  shape.invocation_id ~ ')') %}
      {% endfor %}
    {% endfor %}
    {% for of_run in letters %}
      {% do sparkevolve__say('  dead letters: ' ~ of_run.letters ~ ', set aside at ' ~ of_run.at ~ ', dbt run ' ~ of_run.invocation_id
                ~ (', of the model ' ~ adapter.quote(of_run.model) if of_run.model is defined else '')) %}
    {% endfor %}
    {% set current = history | selectattr('is_current') | first %}
    {% do sparkevolve__say('  columns now:') %}
    {% for column in current.columns %}
      {% do sparkevolve__say('    ' ~ adapter.quote(column.name) ~ ' (' ~ column.id ~ ') ' ~ column.type ~
                (' default ' ~ column.default if column.default is defined else '')) %}
    {% endfor %}
  {% endif %}
{% endmacro %}


{# How many rows each run of a model has set aside that are not in its table yet. Another table may have the name. #}
{% macro sparkevolve__letters_by_run(node) %}
  {% set found = [] %}
  {% if node.config.materialized == 'incremental' %}
    {% set named = node.relation.incorporate(
      path={'identifier': node.relation.identifier ~ node.settings.dead_letter_suffix}
    ) %}
    {# The rest is in metadata: Spark is started for letters only. #}
    {% set letters = none %}
    {% if adapter.load_runner(named).may_have_rows(named) %}
      {% set letters = adapter.get_relation(named.database, named.schema, named.identifier) %}
    {% endif %}
    {% set columns = [] %}
    {% if letters is not none and letters.is_iceberg %}
      {% set columns = adapter.get_columns_in_relation(letters) | map(attribute='name') | map('lower') | list %}
    {% endif %}
    {% if 'invocationid' in columns and 'loadedat' in columns and 'modelname' in columns %}
      {% set query %}
        select invocationId, unix_micros(min(loadedAt)), count(*), modelName from {{ letters }}
        group by invocationId, modelName order by min(loadedAt)
      {% endset %}
      {% for row in run_query(query).rows %}
        {# Whole seconds: what others write there may be of any time, or none. #}
        {% set seconds = (row[1] or 0) | int // 1000000 %}
        {% set at = modules.datetime.datetime.fromtimestamp(seconds, modules.pytz.utc).isoformat() %}
        {% set of_run = {'invocation_id': row[0], 'at': at if row[1] else none, 'letters': row[2] | int} %}
        {# The model may have had another name. #}
        {% if row[3] and row[3] != node.unique_id.split('.')[2] %}
          {% do of_run.update({'model': row[3]}) %}
        {% endif %}
        {% do found.append(of_run) %}
      {% endfor %}
    {% endif %}
  {% endif %}
  {% do return(found) %}
{% endmacro %}
