{# What of a model's configuration has no effect: since only others read it, since its strategy does not, or since its
   table was made before. The texts are the adapter's. #}


{# Warn of the settings of a model, before anything of it runs. #}
{% macro warn_of_settings() %}
  {% do sparkevolve.check_config() %}
  {% do sparkevolve.warn(
    model.unique_id, sparkevolve.settings_without_effect(dict(model.config, **sparkevolve.own_meta()))
  ) %}
{% endmacro %}


{# Refuse what cannot be what somebody wants. #}
{% macro check_config() %}
  {% if sparkevolve.configured('sql_header') %}
    {% do sparkevolve.raise_setting(
      'sql_header', sparkevolve.configured('sql_header'),
      'It is not run: Spark runs one statement in a call, and what it sets would stay for other models. Use '
      ~ '`server_side_parameters` of the profile, or a pre_hook.'
    ) %}
  {% endif %}
  {% for name in sparkevolve.configured('tblproperties') or {} if (name | string | lower).startswith('sparkevolve.') %}
    {% do sparkevolve.raise_setting(
      'tblproperties', name, 'Properties with this prefix are kept by sparkevolve itself.'
    ) %}
  {% endfor %}
  {% if sparkevolve.configured('incremental_strategy') == 'insert_overwrite'
        and sparkevolve.configured('partition_by') == [] %}
    {% do sparkevolve.raise_setting('partition_by', [], 'Leave it out if the whole table is to be overwritten.') %}
  {% endif %}
{% endmacro %}


{# What to say of the settings of a model, of which `config` has each by its name. #}
{% macro settings_without_effect(config) %}
  {% set given, found = [], [] %}
  {% for name, value in config.items() if value is not none and value != [] %}
    {% do given.append(name) %}
  {% endfor %}
  {% set foreign = sparkevolve.foreign_settings() %}
  {% for name in given if name in foreign %}
    {% do found.append('`' ~ name ~ '` has no effect with sparkevolve: ' ~ foreign[name] ~ '.') %}
  {% endfor %}
  {% for one, other in [['clustered_by', 'buckets'], ['buckets', 'clustered_by']] %}
    {% if one in given and other not in given %}
      {% do found.append('`' ~ one ~ '` has no effect without `' ~ other ~ '`.') %}
    {% endif %}
  {% endfor %}
  {% set strategy = config.get('incremental_strategy') or ('delete+insert' if config.get('unique_key') else 'append') %}
  {% set keyed, merging = ['delete+insert', 'merge', 'microbatch'], ['merge'] %}
  {% set strategies = {
    'incremental_predicates': keyed, 'predicates': keyed, 'merge_update_columns': merging, 'merge_exclude_columns': merging
  } %}
  {% for name in given if name in strategies and strategy not in strategies[name] %}
    {% do found.append(
      '`' ~ name ~ '` has no effect with the incremental_strategy ' ~ strategy ~ ': it is for '
      ~ strategies[name] | join(', ') ~ '.'
    ) %}
  {% endfor %}
  {% for name in given if name in ['dead_letter_suffix', 'dead_letter_limit'] %}
    {% do found.append(
      '`' ~ name ~ '` has no effect without `on_bad_rows: dead_letter`: a bad row fails the run.'
    ) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# What of the model no run brings into a table that is there. #}
{% macro differences(table, settings) %}
  {% set found = [] %}
  {% set wanted, actual = sparkevolve.wanted_partitions(settings), sparkevolve.parse_partitions(table.partitions) %}
  {% if wanted and not sparkevolve.same_partitions(wanted, actual, settings.column_renames) %}
    {% set name = '`partition_by`' if settings.partition_by else '`clustered_by`' %}
    {% do found.append(
      'The model is partitioned by ' ~ wanted | join(', ') ~ ' and the table by ' ~ (actual | join(', ') or 'nothing') ~ '. '
      ~ ('A full refresh leaves that as it is: change it with `ALTER TABLE`, or set `full_refresh_schema: replace`.'
         if settings.strategy == 'full_refresh' else
         'The rows are written as the table is partitioned: change it with `ALTER TABLE`, or make ' ~ name
         ~ ' what the table has.')
    ) %}
  {% endif %}
  {% set location = sparkevolve.location(settings) %}
  {% if location is not none and table.location is not none
        and not sparkevolve.is_same_location(location, table.location) %}
    {% do found.append(
      '`location_root` of the model says ' ~ location ~ ', and the table stays in ' ~ table.location
      ~ '. Take `location_root` out, or make it what the table has.'
    ) %}
  {% endif %}
  {% for keyword, values, why in [
    ['options', settings.options, 'reach a table when it is made, and this one lacks '],
    ['tblproperties', settings.tblproperties, 'reach a table when it is made, with this package, and this one lacks ']
  ] %}
    {% set lacking = [] %}
    {# What Spark shows of a table has quotes and backslashes escaped, and what looks like an address or a secret, by its
       name or its value, is not shown at all: whether it is the model's nobody can tell. #}
    {% for name, text in values.items() %}
      {% set shown = table.properties.get(name | replace("'", "\\'"), table.properties.get(name)) %}
      {% if shown not in [
        text, sparkevolve.constant_literal(text)[1:-1], text | replace("'", "\\'"), '*********(redacted)'
      ] %}
        {% do lacking.append(name ~ ' = ' ~ text) %}
      {% endif %}
    {% endfor %}
    {% if lacking %}
      {% do found.append(
        '`' ~ keyword ~ '` of the model ' ~ why ~ lacking | join(', ') ~ '. Use `ALTER TABLE ' ~ table.relation
        ~ ' SET TBLPROPERTIES`.'
      ) %}
    {% endif %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# Whether two texts may name one folder, as different clients write them: without a scheme, only paths count. #}
{% macro is_same_location(one, other) %}
  {% set sides = [] %}
  {% for text in [one, other] %}
    {% set parts = modules.re.match('(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?((?:.|\\n)*)$', text) %}
    {% set scheme = (parts.group(1) or '') | lower %}
    {% set names = [] %}
    {% for name in parts.group(3).split('/') if name %}
      {% do names.append(name) %}
    {% endfor %}
    {% do sides.append({
      'scheme': {'s3a': 's3', 's3n': 's3', 'abfs': 'abfss', 'wasb': 'wasbs'}.get(scheme, scheme),
      'host': parts.group(2) or '', 'path': names
    }) %}
  {% endfor %}
  {% do return(
    sides[0] == sides[1] if sides[0].scheme and sides[1].scheme else sides[0].path == sides[1].path
  ) %}
{% endmacro %}


{# Settings of other adapters that models bring along, and what to do instead. #}
{% macro foreign_settings() %}
  {% do return({
    'not_matched_by_source_action': 'delete in a post-hook the rows that the source no longer has',
    'not_matched_by_source_condition': 'delete in a post-hook the rows that the source no longer has',
    'delete_condition': 'delete in a post-hook',
    'update_condition': "say it in the model's SQL: return only rows that are to be updated",
    'insert_condition': "say it in the model's SQL: return only rows that are to be inserted",
    'matched_condition': "say it in the model's SQL: return only rows that are to be updated",
    'not_matched_condition': "say it in the model's SQL: return only rows that are to be inserted",
    'skip_matched_step': "say it in the model's SQL: leave out the keys that {" ~ "{ this }" ~ "} has",
    'skip_not_matched_step': "say it in the model's SQL: return only keys that {" ~ "{ this }" ~ "} has",
    'target_alias': 'the table is `DBT_INTERNAL_DEST` in conditions',
    'source_alias': 'the batch is `DBT_INTERNAL_SOURCE` in conditions',
    'merge_with_schema_evolution': 'use `on_schema_change: append_new_columns_preserve`',
    'on_table_exists': 'a table is replaced in one commit, and an incremental one is kept',
    'require_partition_filter': 'Iceberg has no such rule',
    'table_properties': "use `tblproperties`, with Iceberg's names",
    'properties': 'use `tblproperties` and `partition_by`',
    'table_type': 'use `file_format`; an incremental model is an Iceberg table',
    'format': 'use `file_format`, and `tblproperties: {write.format.default: ...}` for the files',
    'write_compression': 'use `tblproperties: {write.parquet.compression-codec: ...}`',
    'compression': 'use `tblproperties: {write.parquet.compression-codec: ...}`',
    's3_data_dir': 'use `location_root`',
    's3_data_naming': 'use `location_root`',
    'external_location': 'use `location_root`',
    'custom_location': 'use `location_root`',
    'base_location_root': 'use `location_root`',
    'liquid_clustered_by': "use `partition_by`, or set the table's order with `ALTER TABLE ... WRITE ORDERED BY`",
    'auto_liquid_cluster': "use `partition_by`, or set the table's order with `ALTER TABLE ... WRITE ORDERED BY`",
    'cluster_by': "use `partition_by`, or set the table's order with `ALTER TABLE ... WRITE ORDERED BY`",
    'zorder': "Iceberg's `rewrite_data_files` sorts files, in a maintenance job of yours",
    'bucketed_by': 'use `partition_by: bucket(16, column)`',
    'bucket_count': 'use `partition_by: bucket(16, column)`',
    'partition_expiration_days': 'delete old rows in a post-hook',
    'hours_to_expiration': 'drop the table when it is no longer needed',
    'partitions': '`insert_overwrite` replaces the partitions that the batch has rows for',
    'copy_partitions': 'use `incremental_strategy: insert_overwrite`',
    'iceberg_expire_snapshots': "use Iceberg's `expire_snapshots`, in a maintenance job of yours",
    'versions_to_keep': "use Iceberg's `expire_snapshots`, in a maintenance job of yours",
    'add_iceberg_timestamp': 'return the column from the model',
    'force_batch': 'it is not needed',
    'lf_tags_config': 'set the tags in Lake Formation',
    'lf_grants': 'grant in Lake Formation',
    'databricks_tags': 'set the tags in the catalog',
    'transient': 'it is not needed',
    'copy_grants': 'grants stay with the table'
  }) %}
{% endmacro %}
