{% materialization table, adapter='sparkevolve', supported_languages=['sql'] -%}
  {% if sparkevolve__is_plan_only() %}
    {{ return(sparkevolve__not_planned()) }}
  {% endif %}
  {% do sparkevolve__warn_of_options() %}
  {% set target_relation = this.incorporate(type='table') %}
  {% set existing_relation = sparkevolve__begin_node(target_relation) %}
  {% set is_replaced = existing_relation is not none and existing_relation.is_iceberg
                       and sparkevolve__file_format() == 'iceberg' %}
  {% set sql = sparkevolve__compiled_query() %}
  {% do sparkevolve__check_frozen(
    existing_relation, get_select_subquery(sql) if config.get('contract').enforced else sql
  ) %}
  {% do sparkevolve__check_described(target_relation, sql) %}
  {% do sparkevolve__check_partitions(target_relation, sql) %}
  {% if is_replaced %}
    {% do adapter.preview().refuse_warned_losses(target_relation, sql, [], 'the model') %}
  {% endif %}
  {% if existing_relation is not none and not is_replaced %}
    {% do sparkevolve__refuse_hidden(target_relation, sparkevolve__creation_clauses()) %}
    {% set sql = sparkevolve__evaluated(target_relation, sql) %}
    {% do adapter.drop_relation(existing_relation) %}
  {% endif %}
  {% call statement('main') %}
    {{ create_table_as(False, target_relation, sql) }}
  {% endcall %}
  {% do sparkevolve__rows_are_visible(target_relation) %}
  {% do sparkevolve__unset_gone_metrics(target_relation) %}
  {% do sparkevolve__grant_and_describe(target_relation, existing_relation, true) %}
  {% do persist_constraints(target_relation, model) %}
  {% do sparkevolve__run_post_hooks() %}
  {% do sparkevolve__store_response(target_relation, source='the model') %}
  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}


{# A query of the rows that the model returns, evaluated before what it may read, or readers need, is dropped. Where
   that cannot be an Iceberg table of a catalog in the profile, whose batches are removed, it is analysed at least. #}
{% macro sparkevolve__evaluated(target_relation, sql) %}
  {% if config.get('contract').enforced %}
    {% do get_assert_columns_equivalent(sql) %}
  {% endif %}
  {% if not sparkevolve__is_managed(target_relation) %}
    {% do get_columns_in_query(sql) %}
    {% do return(sql) %}
  {% endif %}
  {% do adapter.batches().remove_abandoned(target_relation) %}
  {% do return('select * from ' ~ sparkevolve__stage(target_relation, sql)) %}
{% endmacro %}
