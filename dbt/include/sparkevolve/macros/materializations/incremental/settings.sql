{# The model's configuration, checked before any SQL runs. #}
{% macro sparkevolve__incremental_settings() %}
  {% set file_format = config.get('file_format') or 'iceberg' %}
  {% if file_format != 'iceberg' %}
    {% do sparkevolve__config_error('file_format', file_format, ['iceberg']) %}
  {% endif %}

  {% set unique_key = config.get('unique_key') %}
  {% set strategy = config.get('incremental_strategy') or ('delete+insert' if unique_key else 'append') %}
  {% set strategies = ['delete+insert', 'append'] %}
  {% if strategy not in strategies %}
    {% do sparkevolve__config_error('incremental_strategy', strategy, strategies) %}
  {% endif %}

  {% set on_schema_change = config.get('on_schema_change', 'ignore') %}
  {% set reactions = ['ignore', 'fail', 'append_new_columns', 'append_new_columns_preserve'] %}
  {% if on_schema_change == 'sync_all_columns' %}
    {% do exceptions.raise_compiler_error(
      "on_schema_change is 'sync_all_columns' in " ~ model.unique_id ~ ", which means to drop columns, and "
      "sparkevolve never drops one. Allowed are: " ~ reactions | join(', ') ~ '.'
    ) %}
  {% elif on_schema_change not in reactions %}
    {% do sparkevolve__config_error('on_schema_change', on_schema_change, reactions) %}
  {% endif %}

  {# Settings of the design that this version does not have yet: to ignore one would write wrong data. #}
  {% for name, only in {'publish': 'direct', 'removed_columns': 'null', 'full_refresh_schema': 'replace'}.items() %}
    {% if (config.get(name) or only) != only %}
      {% do sparkevolve__config_error(name, config.get(name), [only]) %}
    {% endif %}
  {% endfor %}
  {% if config.get('audits') %}
    {% do sparkevolve__config_error('audits', config.get('audits'), ['none: this version does not have it']) %}
  {% endif %}

  {% set switches = {} %}
  {% for name in ['type_widening', 'relax_not_null', 'nested_evolution'] %}
    {% set value = config.get(name, true) %}
    {% if value is not boolean %}
      {% do sparkevolve__config_error(name, value, ['true', 'false']) %}
    {% endif %}
    {# Under `fail` nothing of the table may change. #}
    {% do switches.update({name: value and on_schema_change != 'fail'}) %}
  {% endfor %}

  {% set unmappable_types = config.get('unmappable_types', 'string') %}
  {% if unmappable_types not in ['string', 'fail'] %}
    {% do sparkevolve__config_error('unmappable_types', unmappable_types, ['string', 'fail']) %}
  {% endif %}

  {% set column_renames = config.get('column_renames') or {} %}
  {% if column_renames is not mapping %}
    {% do sparkevolve__config_error('column_renames', column_renames, ['a mapping of old to new names']) %}
  {% endif %}

  {% set retries = config.get('commit_retries', 4) %}
  {% if retries is not integer or retries < 0 %}
    {% do sparkevolve__config_error('commit_retries', retries, ['whole numbers from 0']) %}
  {% endif %}

  {% set predicates = config.get('predicates') or config.get('incremental_predicates') or [] %}
  {% do return({
    'unique_key': unique_key if strategy == 'delete+insert' else none,
    'on_schema_change': on_schema_change,
    'add_columns': on_schema_change in ['append_new_columns', 'append_new_columns_preserve'],
    'predicates': [predicates] if predicates is string else predicates,
    'commit_retries': retries,
    'column_renames': column_renames,
    'unmappable_types': unmappable_types,
    'type_widening': switches.type_widening,
    'relax_not_null': switches.relax_not_null,
    'nested_evolution': switches.nested_evolution,
  }) %}
{% endmacro %}


{% macro sparkevolve__config_error(name, value, allowed) %}
  {% do exceptions.raise_compiler_error(
    name ~ ' is ' ~ (value | tojson) ~ ' in ' ~ model.unique_id ~ '. Allowed are: ' ~ allowed | join(', ') ~ '.'
  ) %}
{% endmacro %}
