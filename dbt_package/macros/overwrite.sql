{# How INSERT OVERWRITE works is a setting of Spark's session. Some servers have one session for all connections, where
   other models, and other dbt commands, say how they want it meanwhile: what is on a branch is looked at before it is
   published (see `compare_with_sent`), and the first value comes back at the end of the dbt command. #}


{% macro overwrite_setting() %}
  {% do return('spark.sql.sources.partitionOverwriteMode') %}
{% endmacro %}


{# Where a shared session keeps the value that was there before the first model has changed it. #}
{% macro kept_setting() %}
  {% do return('sparkevolve.partitionOverwriteMode.before') %}
{% endmacro %}


{# How INSERT OVERWRITE has to work for a strategy, none for one that does not use it. #}
{% macro overwrite_mode(settings) %}
  {% if settings.strategy == 'full_refresh' %}
    {% do return('STATIC') %}
  {% elif settings.strategy == 'insert_overwrite' %}
    {% do return('DYNAMIC' if settings.partition_by else 'STATIC') %}
  {% endif %}
  {% do return(none) %}
{% endmacro %}


{# What a hook leaves in its session at the beginning of a dbt command: who finds it shares that session. #}
{% macro session_mark() %}
  {% do return('sparkevolve.session') %}
{% endmacro %}


{% macro mark_session() %}
  {% do sparkevolve.set_setting(sparkevolve.session_mark(), invocation_id) %}
  {% do sparkevolve.note_shared_session(none) %}
{% endmacro %}


{# Whether other models of this command, or others, write in the session of this connection. It is so for all connections of
   a command, or for none: the first model asks, and notes it where the others find it, if this dbt lets it. #}
{% macro has_shared_session() %}
  {% set noted = graph.get('sparkevolve_shared_session') %}
  {% if noted is none %}
    {% set noted = sparkevolve.spark_setting(sparkevolve.session_mark()) is not none %}
    {% do sparkevolve.note_shared_session(noted) %}
  {% endif %}
  {% do return(noted) %}
{% endmacro %}


{% macro note_shared_session(answer) %}
  {% if graph.update is defined %}
    {% do graph.update({'sparkevolve_shared_session': answer}) %}
  {% endif %}
{% endmacro %}


{# Whether the server says so. #}
{% macro has_one_session() %}
  {% do return(
    sparkevolve.spark_setting('spark.sql.hive.thriftServer.singleSession', 'false') | lower == 'true'
  ) %}
{% endmacro %}


{# Those of some nodes that use INSERT OVERWRITE. #}
{% macro overwriting(nodes) %}
  {% set found = [] %}
  {% for node in nodes if node.resource_type == 'model' and node.config.materialized == 'incremental' %}
    {% set own = (node.config.get('meta') or {}).get('sparkevolve') or {} %}
    {% set strategy = (own if own is mapping else {}).get(
      'incremental_strategy', node.config.get('incremental_strategy')
    ) %}
    {% if strategy == 'insert_overwrite' or flags.FULL_REFRESH or node.config.get('full_refresh') %}
      {% do found.append(node.unique_id) %}
    {% endif %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# Set how INSERT OVERWRITE works. Returns what `reset_overwrite_mode` has to set after it; none if nothing has to be. #}
{% macro set_overwrite_mode(settings) %}
  {% set mode = sparkevolve.overwrite_mode(settings) %}
  {% if mode is none %}
    {% do return(none) %}
  {% endif %}
  {% set before = sparkevolve.spark_setting(sparkevolve.overwrite_setting(), 'STATIC') %}
  {% if before | upper == mode %}
    {% do return(none) %}
  {% endif %}
  {% set is_shared = sparkevolve.has_shared_session() %}
  {# In this order: whoever sees a value that another model has set sees, too, that the one before it is kept. #}
  {% if is_shared and sparkevolve.spark_setting(sparkevolve.kept_setting()) is none %}
    {% do sparkevolve.set_setting(sparkevolve.kept_setting(), before) %}
  {% endif %}
  {% do sparkevolve.set_setting(sparkevolve.overwrite_setting(), mode) %}
  {# To set it back now would disturb the models that load beside this one. #}
  {% do return(none if is_shared else before) %}
{% endmacro %}


{# Not RESET, which would forget what the profile has set for the connection. A session that is not shared ends with its
   node, so that nothing is left of one that fails. #}
{% macro reset_overwrite_mode(before) %}
  {% if before is not none %}
    {% do sparkevolve.set_setting(sparkevolve.overwrite_setting(), before) %}
  {% endif %}
{% endmacro %}


{# At the end of a dbt command, of whose models some may have failed: bring back what a shared session had. #}
{% macro restore_overwrite_mode(results) %}
  {% if sparkevolve.overwriting(results | map(attribute='node') | list) %}
    {% set before = sparkevolve.spark_setting(sparkevolve.kept_setting()) %}
    {% if before is not none %}
      {% do sparkevolve.set_setting(sparkevolve.overwrite_setting(), before) %}
      {% do sparkevolve.run_statement('reset ' ~ sparkevolve.quote(sparkevolve.kept_setting())) %}
    {% endif %}
  {% endif %}
{% endmacro %}


{# Refuse to overwrite partitions where readers see it at once, and another model may say meanwhile how that works. #}
{% macro check_session(table, settings, on_branch) %}
  {% if on_branch or not table.partitions or sparkevolve.overwrite_mode(settings) is none %}
    {% do return('') %}
  {% elif not sparkevolve.has_one_session() and (target.threads == 1 or not sparkevolve.has_shared_session()) %}
    {% do return('') %}
  {% endif %}
  {% do exceptions.raise_compiler_error(
    table.relation ~ ' cannot be overwritten with `publish: direct`: all connections share one session of this Spark (see '
    ~ '`spark.sql.hive.thriftServer.singleSession`), and another model may change '
    ~ '`spark.sql.sources.partitionOverwriteMode` in the moment before the INSERT, which would then replace other '
    ~ 'partitions. Set `publish: branch` in the model, where that is seen before it is published, or another '
    ~ 'incremental_strategy. Nothing was written.'
  ) %}
{% endmacro %}


{# Refuse a profile that takes back how partitions are overwritten: with `method: session`, dbt-spark gives the session what
   `server_side_parameters` say again before each statement, so that nothing lasts which a run sets. Another model of the
   session may set it meanwhile, too, though not each time. #}
{% macro check_overwrite_mode_lasts(target, settings, changed) %}
  {% set mode, seen = sparkevolve.overwrite_mode(settings), [] %}
  {% if mode is none or not sparkevolve.has_shared_session() %}
    {% do return('') %}
  {% endif %}
  {% for _ in range(5) %}
    {% if mode not in seen %}
      {% do sparkevolve.set_overwrite_mode(settings) %}
      {% do seen.append(sparkevolve.spark_setting(sparkevolve.overwrite_setting(), 'STATIC') | upper) %}
    {% endif %}
  {% endfor %}
  {% if mode not in seen %}
    {% do exceptions.raise_compiler_error(
      target ~ ' cannot be overwritten: `' ~ sparkevolve.overwrite_setting() ~ '` was set to ' ~ mode
      ~ ', which this run needs, and is ' ~ (seen | last) ~ ' again. With `method: session`, dbt-spark sets what '
      ~ '`server_side_parameters` of the profile have again before each statement. Take it out of there: this package sets '
      ~ 'it for each model that needs it. So ' ~ sparkevolve.what_was_written(changed) ~ '.'
    ) %}
  {% endif %}
{% endmacro %}
