{# `dbt clone` makes a view that selects from the relation of the other target: no table format here has a clone of its
   own. Hooks are about tables, so they do not run. #}
{% materialization clone, adapter='sparkevolve' -%}
  {% if not defer_relation %}
    {% do log('No relation found in state manifest for ' ~ model.unique_id, info=True) %}
    {{ return({'relations': []}) }}
  {% endif %}
  {% set target_relation = this.incorporate(type='view') %}
  {% set existing_relation = adapter.current_relation(this) %}
  {% if existing_relation is not none and not flags.FULL_REFRESH %}
    {% do log('Relation ' ~ existing_relation ~ ' already exists', info=True) %}
    {{ return({'relations': []}) }}
  {% endif %}
  {% do adapter.checks().clone(target_relation, existing_relation, defer_relation) %}
  {% do adapter.checks().grants(target_relation, config.get('grants')) %}
  {% call statement('main') %}
    {{ get_create_view_as_sql(target_relation, sparkevolve__compiled_query()) }}
  {% endcall %}
  {% do sparkevolve__grant(target_relation, existing_relation, true) %}
  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}
