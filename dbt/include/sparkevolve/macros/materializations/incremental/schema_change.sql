{# Which columns are new, in the source but not in the target, and which are removed, the other way round: by folded
   name, in the order and spelling of their side. `not_stored` are columns of the source that no table is to have. #}
{% macro sparkevolve__detect_schema_change(source_names, target_names, not_stored=[]) %}
  {% set known = (target_names | list + not_stored | list) | map('lower') | list %}
  {% set returned = source_names | map('lower') | reject('in', not_stored | map('lower') | list) | list %}
  {% set new, removed = [], [] %}
  {% for name in source_names if name | lower not in known %}
    {% do new.append(name) %}
  {% endfor %}
  {% for name in target_names if name | lower not in returned %}
    {% do removed.append(name) %}
  {% endfor %}
  {% do return({'new': new, 'removed': removed}) %}
{% endmacro %}


{# Refuse a change of columns under `fail`: before the model is computed, since names are known from its query. #}
{% macro sparkevolve__check_schema_change(target_relation, detected, settings, written='nothing was written') %}
  {% for text in sparkevolve__schema_change_refusals(target_relation, detected, settings, written) %}
    {% do adapter.checks().columns_differ(text) %}
  {% endfor %}
{% endmacro %}


{# Why a run would refuse a change of columns: one text, or none. `written` says what it has written before. #}
{% macro sparkevolve__schema_change_refusals(target_relation, detected, settings, written='nothing was written') %}
  {% if settings.on_schema_change != 'fail' or settings.is_refreshed or not (detected.new or detected.removed) %}
    {% do return([]) %}
  {% endif %}
  {% do return([
    'The columns of ' ~ model.unique_id ~ ' and of its table ' ~ target_relation ~ ' differ, and '
    "on_schema_change is 'fail', so " ~ written ~ '. In the model only: '
    ~ (detected.new | join(', ') or 'none') ~ '. In the table only: '
    ~ (detected.removed | join(', ') or 'none') ~ ". Change the model, or set on_schema_change to "
    "'append_new_columns_preserve'."
  ]) %}
{% endmacro %}


{# What is detected goes into dbt's log file; what became of it is shown once the table has been changed. #}
{% macro sparkevolve__log_detected(relation, detected) %}
  {% if detected.new or detected.removed %}
    {% do log(
      relation ~ ': columns in the model only: ' ~ (detected.new | join(', ') or 'none')
      ~ '; in the table only: ' ~ (detected.removed | join(', ') or 'none')
    ) %}
  {% endif %}
{% endmacro %}


{# All that a run does to the columns is one line. #}
{% macro sparkevolve__log_evolution(relation, load) %}
  {% if load.said %}
    {% do log(relation ~ ': ' ~ load.said, info=True) %}
  {% endif %}
  {% do sparkevolve__warn(load.warnings(model.unique_id, graph)) %}
  {% for text in load.told %}
    {% do log(relation ~ ': ' ~ text) %}
  {% endfor %}
{% endmacro %}
