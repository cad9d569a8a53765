{% materialization table, adapter='sparkevolve', supported_languages=['sql'] -%}
  {% if sparkevolve__is_plan_only() %}
    {{ return(sparkevolve__not_planned()) }}
  {% endif %}
  {% set target_relation = this.incorporate(type='table') %}
  {% set existing_relation = sparkevolve__begin_node(target_relation) %}
  {% set is_replaced = existing_relation is not none and existing_relation.is_iceberg
                       and (config.get('file_format') or 'iceberg') == 'iceberg' %}
  {% if existing_relation is not none and not is_replaced %}
    {% do adapter.drop_relation(existing_relation) %}
  {% endif %}
  {% call statement('main') %}
    {{ create_table_as(False, target_relation, sparkevolve__compiled_query()) }}
  {% endcall %}
  {% do sparkevolve__rows_are_visible(target_relation) %}
  {% do sparkevolve__grant_and_describe(target_relation, existing_relation, true) %}
  {% do persist_constraints(target_relation, model) %}
  {% do sparkevolve__run_post_hooks() %}
  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}
