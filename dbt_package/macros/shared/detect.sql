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
