{# The settings of an incremental model: what each may be, and its default. They are the adapter's, in its words. One under
   `meta.sparkevolve` goes before the same one beside `meta`, where dbt v2 allows no keys of its own. #}


{# What the configuration has under a name; none is told from what is not set, which is `otherwise`. #}
{% macro configured(name, otherwise=none) %}
  {% set own = sparkevolve.own_meta() %}
  {% if name in own %}
    {% do return(own[name]) %}
  {% endif %}
  {% do return(config.get(name, otherwise)) %}
{% endmacro %}


{# What stands under `meta.sparkevolve`, where nobody else's settings are: a name that is none of ours is refused. #}
{% macro own_meta() %}
  {% set meta = config.get('meta', {}) %}
  {% set own = meta.get('sparkevolve') if meta is mapping else none %}
  {% if own is none %}
    {% do return({}) %}
  {% elif own is not mapping %}
    {% do sparkevolve.raise_setting('meta.sparkevolve', own, 'It has to be a mapping of settings to values.') %}
  {% endif %}
  {% set known = sparkevolve.setting_names() %}
  {% for name in own if name not in known %}
    {% do exceptions.raise_compiler_error(
      '`meta.sparkevolve` has `' ~ name ~ '` in ' ~ model.unique_id ~ ', which is no setting. Allowed are: '
      ~ known | join(', ') ~ '.'
    ) %}
  {% endfor %}
  {% do return(own) %}
{% endmacro %}


{% macro setting_names() %}
  {% do return([
    'on_schema_change', 'incremental_strategy', 'unique_key', 'incremental_predicates',
    'merge_update_columns', 'merge_exclude_columns', 'removed_columns', 'publish', 'audits', 'on_bad_rows',
    'dead_letter_suffix', 'dead_letter_limit', 'full_refresh_schema', 'type_widening', 'relax_not_null',
    'nested_evolution', 'unmappable_types', 'column_renames', 'column_defaults', 'pad_with', 'commit_retries',
    'tblproperties', 'partition_by', 'clustered_by', 'buckets', 'location_root', 'options', 'event_time',
    'file_format'
  ]) %}
{% endmacro %}


{# Settings of the adapter that this package cannot do; what they are where they do nothing is allowed. #}
{% macro refuse_adapters_settings() %}
  {% for name, harmless, what in [
    ['column_defaults', [none, {}], 'stores defaults of columns'],
    ['pad_with', [none, 'null'], 'pads with a default'],
    ['on_bad_rows', [none, 'fail'], 'sets bad rows aside']
  ] %}
    {% set value = sparkevolve.configured(name) %}
    {% if value not in harmless %}
      {% do sparkevolve.raise_setting(
        name, value, 'Only dbt-sparkevolve itself ' ~ what ~ ': leave it out, or run the model with the adapter. Nothing was '
        ~ 'written.'
      ) %}
    {% endif %}
  {% endfor %}
  {% for name, column in model.columns.items() %}
    {% set meta = column.get('meta') or (column.get('config') or {}).get('meta') or {} %}
    {% if 'default' in column or 'default' in meta %}
      {% do exceptions.raise_compiler_error(
        'The column `' ~ name ~ '` of ' ~ model.unique_id ~ ' has a `default` in its properties. Only dbt-sparkevolve itself '
        ~ 'stores defaults of columns: leave it out, or run the model with the adapter. Nothing was written.'
      ) %}
    {% endif %}
  {% endfor %}
{% endmacro %}


{% macro raise_setting(name, value, remedy) %}
  {% do exceptions.raise_compiler_error(
    name ~ ' is ' ~ tojson(value) ~ ' in ' ~ model.unique_id ~ '. ' ~ remedy
  ) %}
{% endmacro %}


{% macro is_name(value) %}
  {% do return(value is string and value | trim != '') %}
{% endmacro %}


{# A name, or a list of one or more. #}
{% macro are_names(value) %}
  {% if value is string %}
    {% do return(value | trim != '') %}
  {% elif value is mapping or value is not iterable or not value %}
    {% do return(false) %}
  {% endif %}
  {% for name in value if not sparkevolve.is_name(name) %}
    {% do return(false) %}
  {% endfor %}
  {% do return(true) %}
{% endmacro %}


{% macro as_list(value) %}
  {% do return([value] if value is string and value else (value or []) | list) %}
{% endmacro %}


{% macro unquoted(names) %}
  {% set found = [] %}
  {% for name in names %}
    {% do found.append(sparkevolve.unquote(name)) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# One of a few words. #}
{% macro word_setting(name, words, otherwise, null_is_unset=false) %}
  {% set value = sparkevolve.configured(name, otherwise) %}
  {% if value is none and null_is_unset %}
    {% do return(otherwise) %}
  {% elif value is not string or value not in words %}
    {% do sparkevolve.raise_setting(name, value, 'Allowed are: ' ~ words | join(', ') ~ '.') %}
  {% endif %}
  {% do return(value) %}
{% endmacro %}


{% macro switch_setting(name) %}
  {% set value = sparkevolve.configured(name, true) %}
  {# A text is read as what it says. #}
  {% set text = value | string | trim | lower if value is boolean or value is integer or value is string else '' %}
  {% if text not in ['true', 'yes', 'on', '1', 'false', 'no', 'off', '0'] %}
    {% do sparkevolve.raise_setting(name, value, 'Allowed are: true, false.') %}
  {% endif %}
  {% do return(text in ['true', 'yes', 'on', '1']) %}
{% endmacro %}


{# Names of columns, or none; `empty` are the values that dbt takes for none. #}
{% macro columns_setting(name, empty=[]) %}
  {% set value = sparkevolve.configured(name) %}
  {% if value is none or value in empty %}
    {% do return([]) %}
  {% elif not sparkevolve.are_names(value) %}
    {% do sparkevolve.raise_setting(
      name, value,
      'It has to be the name of a column, or a list of names with at least one; leave it out for none.'
    ) %}
  {% endif %}
  {% do return(sparkevolve.unquoted(sparkevolve.as_list(value))) %}
{% endmacro %}


{% macro conditions_setting(name, other_name=none) %}
  {% set value = (sparkevolve.configured(other_name) if other_name else none) or sparkevolve.configured(name) %}
  {% if value is none or value == [] %}
    {% do return([]) %}
  {% elif not sparkevolve.are_names(value) %}
    {% do sparkevolve.raise_setting(name, value, 'Allowed are: an SQL condition, or a list of them.') %}
  {% endif %}
  {% do return(sparkevolve.as_list(value)) %}
{% endmacro %}


{# Conditions, each maybe with a `severity`, which makes no difference here: it is about rows that are set aside. #}
{% macro audits_setting() %}
  {% set value = sparkevolve.configured('audits') %}
  {% if value is none or value == [] %}
    {% do return([]) %}
  {% endif %}
  {% set found = [] %}
  {% set listed = [value] if value is string or value is mapping else (value if value is iterable else []) %}
  {% for audit in listed %}
    {% set text = audit.get('sql') if audit is mapping else audit %}
    {% if sparkevolve.is_name(text) and (audit is string or (
      audit.keys() | reject('in', ['sql', 'severity']) | list == [] and audit.get('severity', 'run') in ['run', 'row']
    )) %}
      {% do found.append(text) %}
    {% endif %}
  {% endfor %}
  {% if not found or found | length != listed | length %}
    {% do sparkevolve.raise_setting(
      'audits', value, 'Allowed are: an SQL condition, or a list of them, of which each may be '
      ~ '`{sql: condition, severity: row}` (or `run`).'
    ) %}
  {% endif %}
  {% do return(found) %}
{% endmacro %}


{% macro renames_setting() %}
  {% set value = sparkevolve.configured('column_renames') %}
  {% if value is none %}
    {% do return({}) %}
  {% endif %}
  {% set remedy = 'It has to be a mapping of old to new names.' %}
  {% if value is not mapping %}
    {% do sparkevolve.raise_setting('column_renames', value, remedy) %}
  {% endif %}
  {% for old, new in value.items() if not (sparkevolve.is_name(old) and sparkevolve.is_name(new)) %}
    {% do sparkevolve.raise_setting('column_renames', value, remedy) %}
  {% endfor %}
  {% do return(value) %}
{% endmacro %}


{# Properties as the texts that a table keeps. #}
{% macro properties_setting(setting) %}
  {% set value = sparkevolve.configured(setting) %}
  {% if value is none %}
    {% do return({}) %}
  {% endif %}
  {% set remedy = 'It has to be a mapping of names to texts, numbers or booleans.' %}
  {% if value is not mapping %}
    {% do sparkevolve.raise_setting(setting, value, remedy) %}
  {% endif %}
  {% set found = {} %}
  {% for name, text in value.items() %}
    {% if not sparkevolve.is_name(name) or not (text is string or text is number or text is boolean) %}
      {% do sparkevolve.raise_setting(setting, value, remedy) %}
    {% endif %}
    {% do found.update({name: text | string | lower if text is boolean else text | string}) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{% macro partitions_setting() %}
  {% set value = sparkevolve.configured('partition_by') or sparkevolve.configured('partitioned_by') %}
  {% if value is none or value == [] %}
    {% do return([]) %}
  {% elif not sparkevolve.are_names(value) %}
    {% do sparkevolve.raise_setting(
      'partition_by', value, 'It has to be a column, a transform such as `days(ts)`, or a list of these.'
    ) %}
  {% endif %}
  {% do return(sparkevolve.as_list(value)) %}
{% endmacro %}


{# The settings of the model that runs, all of them checked. `full_refresh`: the run replaces all rows of the table. #}
{% macro incremental_settings(full_refresh) %}
  {% set format = sparkevolve.configured('file_format') or 'iceberg' %}
  {% if format != 'iceberg' %}
    {% do sparkevolve.raise_setting('file_format', format, 'Allowed are: iceberg.') %}
  {% endif %}
  {% do sparkevolve.refuse_adapters_settings() %}
  {% set modes = ['ignore', 'fail', 'append_new_columns', 'append_new_columns_preserve'] %}
  {% if sparkevolve.configured('on_schema_change') == 'sync_all_columns' %}
    {% do exceptions.raise_compiler_error(
      "on_schema_change is 'sync_all_columns' in " ~ model.unique_id ~ ', which means to drop columns, and sparkevolve '
      ~ 'never drops one. Allowed are: ' ~ modes | join(', ') ~ '.'
    ) %}
  {% endif %}
  {% set on_schema_change = sparkevolve.word_setting('on_schema_change', modes, 'ignore') %}
  {% set strategies = ['delete+insert', 'append', 'merge', 'insert_overwrite', 'microbatch'] %}
  {% set unique_key = sparkevolve.columns_setting('unique_key', [[], '']) %}
  {% set strategy = sparkevolve.word_setting(
    'incremental_strategy', strategies, 'delete+insert' if unique_key else 'append', true
  ) %}
  {% set retries = sparkevolve.configured('commit_retries', 4) %}
  {% set digits = retries | string | trim if retries is string or (retries is integer and retries is not boolean) else '' %}
  {% if digits == '' or digits | length > 18 or digits.strip('0123456789') != '' %}
    {% do sparkevolve.raise_setting('commit_retries', retries, 'Allowed are: whole numbers from 0.') %}
  {% endif %}
  {% set retries = digits | int %}
  {% set event_time = sparkevolve.configured('event_time') %}
  {% if event_time is not none and not sparkevolve.is_name(event_time) %}
    {% do sparkevolve.raise_setting('event_time', event_time, 'It has to be the name of a column.') %}
  {% endif %}
  {% set location_root = sparkevolve.configured('location_root') %}
  {% if location_root is not none and not sparkevolve.is_name(location_root) %}
    {% do sparkevolve.raise_setting(
      'location_root', location_root, 'It has to be a location, such as `s3://bucket/folder`.'
    ) %}
  {% endif %}
  {# A full refresh of a microbatch model is one in its first batch only; the others may do as much. #}
  {% set asked = config.get('full_refresh') %}
  {% set asked = flags.FULL_REFRESH if asked is none else asked %}
  {% set is_refreshed = full_refresh or (strategy == 'microbatch' and asked) %}
  {# Under `fail` nothing of the table may change, but by a full refresh. #}
  {% set is_frozen = on_schema_change == 'fail' and not is_refreshed %}
  {% set switches, frozen = {}, [] %}
  {% for name in ['type_widening', 'relax_not_null', 'nested_evolution'] %}
    {% set is_on = sparkevolve.switch_setting(name) %}
    {% do switches.update({name: is_on and not is_frozen}) %}
    {% if is_on and is_frozen %}
      {% do frozen.append(name) %}
    {% endif %}
  {% endfor %}
  {% set settings = {
    'node': model.unique_id,
    'on_schema_change': on_schema_change,
    'strategy': strategy,
    'unique_key': unique_key,
    'predicates': sparkevolve.conditions_setting('incremental_predicates', 'predicates'),
    'merge_update_columns': sparkevolve.columns_setting('merge_update_columns'),
    'merge_exclude_columns': sparkevolve.columns_setting('merge_exclude_columns'),
    'removed_columns': sparkevolve.word_setting('removed_columns', ['null', 'keep'], 'null', true),
    'publish': sparkevolve.word_setting('publish', ['branch', 'direct'], 'branch', true),
    'audits': sparkevolve.audits_setting(),
    'full_refresh_schema': sparkevolve.word_setting('full_refresh_schema', ['keep', 'replace'], 'keep', true),
    'unmappable_types': sparkevolve.word_setting('unmappable_types', ['string', 'fail'], 'string'),
    'column_renames': sparkevolve.renames_setting(),
    'commit_retries': retries,
    'tblproperties': sparkevolve.properties_setting('tblproperties'),
    'options': sparkevolve.properties_setting('options'),
    'location_root': location_root,
    'partition_by': sparkevolve.partitions_setting(),
    'clustered_by': sparkevolve.columns_setting('clustered_by'),
    'buckets': sparkevolve.configured('buckets'),
    'event_time': sparkevolve.unquote(event_time) if event_time is not none else none,
    'type_widening': switches.type_widening,
    'relax_not_null': switches.relax_not_null,
    'nested_evolution': switches.nested_evolution,
    'frozen': frozen,
    'event_time_start': config.get('__dbt_internal_microbatch_event_time_start'),
    'event_time_end': config.get('__dbt_internal_microbatch_event_time_end'),
    'is_refreshed': is_refreshed,
    'is_sampled_empty': flags.EMPTY and not full_refresh,
    'add_columns': is_refreshed or on_schema_change in ['append_new_columns', 'append_new_columns_preserve']
  } %}
  {% do sparkevolve.check_conflicts(settings) %}
  {% if strategy not in ['delete+insert', 'merge'] %}
    {% do settings.update({'unique_key': []}) %}
  {% endif %}
  {% if full_refresh %}
    {% do settings.update({'strategy': 'full_refresh'}) %}
  {% endif %}
  {# The columns by which a batch replaces rows, and the setting that names them. #}
  {% set is_microbatch = settings.strategy == 'microbatch' %}
  {% do settings.update({
    'key_setting': 'event_time' if is_microbatch else 'unique_key',
    'replacing': ([settings.event_time] if settings.event_time else []) if is_microbatch else settings.unique_key
  }) %}
  {% do return(settings) %}
{% endmacro %}


{# Refuse settings that contradict each other. #}
{% macro check_conflicts(settings) %}
  {% set node = settings.node %}
  {% if settings.strategy == 'microbatch' and settings.event_time_start is none
        and config.get('incremental_strategy') != 'microbatch' %}
    {% do exceptions.raise_compiler_error(
      "incremental_strategy is 'microbatch' under `meta.sparkevolve` in " ~ node ~ ', where dbt does not see it, so it runs '
      ~ 'the model as a whole and not batch by batch. Write it, and `event_time`, `begin` and `batch_size`, beside `meta`.'
    ) %}
  {% elif settings.strategy == 'microbatch' and settings.event_time_start is none %}
    {% do exceptions.raise_compiler_error(
      "incremental_strategy is 'microbatch' in " ~ node ~ ', and dbt runs the model as a whole and not batch by batch, '
      ~ 'since the project or a package has a macro `get_incremental_microbatch_sql`. sparkevolve does not use it: '
      ~ 'remove it, or set the flag `require_batched_execution_for_custom_microbatch_strategy` in dbt_project.yml.'
    ) %}
  {% endif %}
  {% if settings.removed_columns == 'keep' and settings.strategy in ['insert_overwrite', 'microbatch'] %}
    {% do exceptions.raise_compiler_error(
      "removed_columns is 'keep' in " ~ node ~ ', but ' ~ settings.strategy ~ ' replaces rows without a key, so there '
      ~ "is no previous value to keep. Use incremental_strategy 'delete+insert' or 'merge'."
    ) %}
  {% endif %}
  {% if settings.audits and settings.publish == 'direct' %}
    {% do exceptions.raise_compiler_error(
      'audits are set in ' ~ node ~ ", but publish is 'direct': rows would be visible before they are checked. Set "
      ~ "publish to 'branch'."
    ) %}
  {% endif %}
  {% set both = [] %}
  {% for name in ['merge_update_columns', 'merge_exclude_columns'] if settings[name] %}
    {% do both.append(name) %}
  {% endfor %}
  {% if both | length > 1 %}
    {% do exceptions.raise_compiler_error(both | join(' and ') ~ ' are both set in ' ~ node ~ '. Set one of them.') %}
  {% elif both and settings.strategy == 'delete+insert' and settings.unique_key %}
    {% do exceptions.raise_compiler_error(
      both[0] ~ ' is set in ' ~ node ~ ', but delete+insert replaces whole rows: columns that are to stay as they are '
      ~ "would be overwritten. Set incremental_strategy to 'merge'."
    ) %}
  {% endif %}
{% endmacro %}
