{# Which columns are in the source but not the target, and the other way round; by folded name, in the order
   and spelling of their side. #}
{% macro sparkevolve__diff_columns(source_names, target_names) %}
  {% set source_folded = source_names | map('lower') | list %}
  {% set target_folded = target_names | map('lower') | list %}
  {% set new, removed = [], [] %}
  {% for name in source_names if name | lower not in target_folded %}
    {% do new.append(name) %}
  {% endfor %}
  {% for name in target_names if name | lower not in source_folded %}
    {% do removed.append(name) %}
  {% endfor %}
  {% do return({'new': new, 'removed': removed}) %}
{% endmacro %}


{% macro sparkevolve__check_schema_change(target_relation, staged, settings) %}
  {% if settings.on_schema_change == 'fail' and not settings.is_refreshed %}
    {% set changes = sparkevolve__diff_columns(
      adapter.get_columns_in_relation(staged) | map(attribute='name') | list,
      adapter.get_columns_in_relation(target_relation) | map(attribute='name') | list
    ) %}
    {% if changes.new or changes.removed %}
      {% do exceptions.raise_compiler_error(
        'The columns of ' ~ model.unique_id ~ ' and of its table ' ~ target_relation ~ ' differ, and '
        "on_schema_change is 'fail', so nothing was written. In the model only: "
        ~ (changes.new | join(', ') or 'none') ~ '. In the table only: '
        ~ (changes.removed | join(', ') or 'none') ~ ". Change the model, or set on_schema_change to "
        "'append_new_columns_preserve'."
      ) %}
    {% endif %}
  {% endif %}
{% endmacro %}


{% macro sparkevolve__log_evolution(relation, load) %}
  {% for change in load.changes %}
    {% do log(relation ~ ': ' ~ change, info=True) %}
  {% endfor %}
  {% for warning in load.warnings %}
    {% do exceptions.warn(relation ~ ': ' ~ warning) %}
  {% endfor %}
  {% for name in load.new_keys %}
    {% do exceptions.warn(
      relation ~ ': the unique_key column ' ~ adapter.quote(name) ~ ' is new. It is NULL in all older rows, so they '
      ~ 'do not match the batch and stay.'
    ) %}
  {% endfor %}
  {% for name in load.removed %}
    {% do log(relation ~ ': column ' ~ name ~ ' is not in the model, ' ~ load.what_removed_get, info=True) %}
  {% endfor %}
  {% for name in load.ignored %}
    {% do log(relation ~ ': column ' ~ name ~ " is not in the table and left out (on_schema_change is 'ignore')", info=True) %}
  {% endfor %}
{% endmacro %}
