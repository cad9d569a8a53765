{% materialization view, adapter='sparkevolve' -%}
  {% if sparkevolve__is_plan_only() %}
    {{ return(sparkevolve__not_planned()) }}
  {% endif %}
  {{ return(sparkevolve__build_view(this.incorporate(type='view'))) }}
{%- endmaterialization %}


{% macro sparkevolve__build_view(target_relation) %}
  {% set existing_relation = sparkevolve__begin_node(target_relation) %}
  {% if existing_relation is not none and not existing_relation.is_view %}
    {% if sparkevolve__freezes_schema() %}
      {% do adapter.checks().frozen(existing_relation, model.unique_id, ['drop the table for a view']) %}
    {% endif %}
    {# A query that cannot be a view takes no table away. #}
    {% do get_columns_in_query(sparkevolve__compiled_query()) %}
    {% if config.get('contract').enforced %}
      {% do get_assert_columns_equivalent(sparkevolve__compiled_query()) %}
    {% endif %}
    {% do handle_existing_table(should_full_refresh(), existing_relation) %}
  {% endif %}
  {% call statement('main') %}
    {{ get_create_view_as_sql(target_relation, sparkevolve__compiled_query()) }}
  {% endcall %}
  {% do sparkevolve__rows_are_visible(target_relation) %}
  {% do sparkevolve__grant_and_describe(target_relation, existing_relation, true) %}
  {% do sparkevolve__run_post_hooks() %}
  {% do return({'relations': [target_relation]}) %}
{% endmacro %}
