{# The model's configuration, checked before any SQL runs: see `settings.py`. #}
{% macro sparkevolve__incremental_settings(full_refresh) %}
  {% do return(adapter.incremental_settings(
    config, full_refresh, flags, sparkevolve__location(), var('sparkevolve_freeze_schema', false)
  )) %}
{% endmacro %}


{% macro sparkevolve__snapshot_settings() %}
  {% do return(sparkevolve__incremental_settings(false).for_snapshot(
    sparkevolve__snapshot_columns(), config.get('unique_key'), config.get('dbt_valid_to_current'), model.unique_id
  )) %}
{% endmacro %}


{% macro sparkevolve__as_list(value) %}
  {% do return([value] if value is string else (value or [])) %}
{% endmacro %}
