{# The model's configuration, checked before any SQL runs. #}
{% macro sparkevolve__incremental_settings(full_refresh) %}
  {% set file_format = config.get('file_format') or 'iceberg' %}
  {% if file_format != 'iceberg' %}
    {% do sparkevolve__config_error('file_format', file_format, ['iceberg']) %}
  {% endif %}

  {% set unique_key = config.get('unique_key') %}
  {% set strategy = sparkevolve__strategy() %}
  {% do sparkevolve__check_choice(
    'incremental_strategy', strategy, ['delete+insert', 'append', 'merge', 'insert_overwrite', 'microbatch']
  ) %}

  {# A full refresh of a microbatch model is one in its first batch only, and its other batches may do what that may. #}
  {% set is_refreshed = full_refresh
     or (strategy == 'microbatch' and sparkevolve__or_default(config.get('full_refresh'), flags.FULL_REFRESH)) %}

  {% if strategy == 'microbatch' and config.get('__dbt_internal_microbatch_event_time_start') is none %}
    {% do exceptions.raise_compiler_error(
      "incremental_strategy is 'microbatch' in " ~ model.unique_id ~ ", and dbt runs the model as a whole and not batch by "
      "batch, since the project or a package has a macro `get_incremental_microbatch_sql`. sparkevolve does not use it: "
      "remove it, or set the flag `require_batched_execution_for_custom_microbatch_strategy` in dbt_project.yml."
    ) %}
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

  {# YAML reads `null` as none, which is the same here. #}
  {% set removed_columns = sparkevolve__or_default(config.get('removed_columns'), 'null') %}
  {% do sparkevolve__check_choice('removed_columns', removed_columns, ['null', 'keep']) %}
  {% if removed_columns == 'keep' and strategy in ['insert_overwrite', 'microbatch'] %}
    {% do exceptions.raise_compiler_error(
      "removed_columns is 'keep' in " ~ model.unique_id ~ ", but " ~ strategy ~ " replaces rows without a key, so "
      "there is no previous value to keep. Use incremental_strategy 'delete+insert' or 'merge'."
    ) %}
  {% endif %}

  {% set publish = sparkevolve__or_default(config.get('publish'), 'branch') %}
  {% do sparkevolve__check_choice('publish', publish, ['branch', 'direct']) %}
  {% set full_refresh_schema = sparkevolve__or_default(config.get('full_refresh_schema'), 'keep') %}
  {% do sparkevolve__check_choice('full_refresh_schema', full_refresh_schema, ['keep', 'replace']) %}

  {% set audits = sparkevolve__conditions('audits', config.get('audits')) %}
  {% if audits and publish == 'direct' %}
    {% do exceptions.raise_compiler_error(
      "audits are set in " ~ model.unique_id ~ ", but publish is 'direct': rows would be visible before they are "
      "checked. Set publish to 'branch'."
    ) %}
  {% endif %}

  {% set update_columns, exclude_columns = config.get('merge_update_columns'), config.get('merge_exclude_columns') %}
  {% if update_columns and exclude_columns %}
    {% do exceptions.raise_compiler_error(
      'merge_update_columns and merge_exclude_columns are both set in ' ~ model.unique_id ~ '. Set one of them.'
    ) %}
  {% endif %}

  {% if (update_columns or exclude_columns) and strategy == 'delete+insert' and unique_key %}
    {% do exceptions.raise_compiler_error(
      ('merge_update_columns' if update_columns else 'merge_exclude_columns') ~ ' is set in ' ~ model.unique_id
      ~ ", but delete+insert replaces whole rows: columns that are to stay as they are would be overwritten. Set "
      ~ "incremental_strategy to 'merge'."
    ) %}
  {% endif %}

  {% set switches, frozen = {}, [] %}
  {% for name in ['type_widening', 'relax_not_null', 'nested_evolution'] %}
    {% set value = config.get(name, true) %}
    {% if value is not boolean %}
      {% do sparkevolve__config_error(name, value, ['true', 'false']) %}
    {% endif %}
    {# Under `fail` nothing of the table may change, but by a full refresh. #}
    {% if value and on_schema_change == 'fail' and not is_refreshed %}
      {% do frozen.append(name) %}
    {% endif %}
    {% do switches.update({name: value and name not in frozen}) %}
  {% endfor %}

  {% set unmappable_types = config.get('unmappable_types', 'string') %}
  {% do sparkevolve__check_choice('unmappable_types', unmappable_types, ['string', 'fail']) %}

  {% set column_renames = config.get('column_renames') or {} %}

  {% do return({
    'strategy': 'full_refresh' if full_refresh else strategy,
    'publish': publish,
    'adds_again': (strategy == 'append' or (strategy in ['delete+insert', 'merge'] and not unique_key))
      and config.get('full_refresh') is not true and not flags.EMPTY,
    'unique_key': unique_key if strategy in ['delete+insert', 'merge'] else none,
    'partition_by': config.get('partition_by'),
    'is_sampled_empty': flags.EMPTY and not full_refresh,
    'clustered_by': config.get('clustered_by'),
    'buckets': config.get('buckets'),
    'location': sparkevolve__location(),
    'options': config.get('options') or {},
    'event_time': config.get('event_time'),
    'event_time_start': config.get('__dbt_internal_microbatch_event_time_start'),
    'event_time_end': config.get('__dbt_internal_microbatch_event_time_end'),
    'on_schema_change': on_schema_change,
    'is_refreshed': is_refreshed,
    'add_columns': is_refreshed or on_schema_change in ['append_new_columns', 'append_new_columns_preserve'],
    'removed_columns': removed_columns,
    'merge_update_columns': update_columns,
    'merge_exclude_columns': exclude_columns,
    'predicates': sparkevolve__conditions(
      'incremental_predicates', config.get('predicates') or config.get('incremental_predicates')
    ),
    'audits': audits,
    'full_refresh_schema': full_refresh_schema,
    'commit_retries': sparkevolve__commit_retries(),
    'column_renames': column_renames,
    'tblproperties': adapter.configured_properties(config.get('tblproperties'), config.persist_relation_docs()),
    'unmappable_types': unmappable_types,
    'type_widening': switches.type_widening,
    'relax_not_null': switches.relax_not_null,
    'nested_evolution': switches.nested_evolution,
    'frozen': frozen,
    'bookkeeping': [],
    'stored_as_they_are': [],
  }) %}
{% endmacro %}


{% macro sparkevolve__strategy() %}
  {% do return(sparkevolve__or_default(
    config.get('incremental_strategy'), 'delete+insert' if config.get('unique_key') else 'append'
  )) %}
{% endmacro %}


{# Only what is not set has a default: not `false`, nor an empty text. #}
{% macro sparkevolve__or_default(value, default) %}
  {% do return(default if value is none else value) %}
{% endmacro %}


{% macro sparkevolve__commit_retries() %}
  {% set retries = config.get('commit_retries', 4) %}
  {% if retries is not integer or retries < 0 %}
    {% do sparkevolve__config_error('commit_retries', retries, ['whole numbers from 0']) %}
  {% endif %}
  {% do return(retries) %}
{% endmacro %}


{% macro sparkevolve__as_list(value) %}
  {% do return([value] if value is string else (value or [])) %}
{% endmacro %}


{# A list of SQL conditions, or one of them. #}
{% macro sparkevolve__conditions(name, value) %}
  {% if value is none or value == [] %}
    {% do return([]) %}
  {% endif %}
  {% set listed = [value] if value is string else value %}
  {% if listed is mapping or listed is not iterable or listed | select('string') | list != listed | list
        or listed | map('trim') | select('equalto', '') | list %}
    {% do sparkevolve__config_error(name, value, ['a SQL condition', 'a list of SQL conditions']) %}
  {% endif %}
  {% do return(listed | list) %}
{% endmacro %}


{% macro sparkevolve__check_choice(name, value, allowed) %}
  {% if value not in allowed %}
    {% do sparkevolve__config_error(name, value, allowed) %}
  {% endif %}
{% endmacro %}


{% macro sparkevolve__config_error(name, value, allowed) %}
  {% do exceptions.raise_compiler_error(
    name ~ ' is ' ~ (value | tojson) ~ ' in ' ~ model.unique_id ~ '. Allowed are: ' ~ allowed | join(', ') ~ '.'
  ) %}
{% endmacro %}
