{% materialization incremental, adapter='sparkevolve', supported_languages=['sql'] -%}
  {%- set full_refresh = should_full_refresh() and not adapter.node().is_continued -%}
  {%- set settings = sparkevolve__incremental_settings(full_refresh) -%}
  {%- set target_relation = this.incorporate(type='table') -%}

  {%- if sparkevolve__is_plan_only() -%}
    {{ return(sparkevolve__plan_only(target_relation, settings, full_refresh)) }}
  {%- endif -%}

  {% do sparkevolve__check_dead_letters(target_relation, settings) %}
  {%- set existing_relation = sparkevolve__begin_node(target_relation) -%}
  {%- set is_new = sparkevolve__is_new(existing_relation, settings, full_refresh) -%}
  {% do adapter.batches().remove_abandoned(target_relation) %}

  {% if not is_new %}
    {% do sparkevolve__grant(target_relation, existing_relation, full_refresh) %}
    {% do sparkevolve__load_existing(target_relation, settings) %}
  {% else %}
    {% do sparkevolve__create_from_model(target_relation, existing_relation, settings) %}
    {% do sparkevolve__rows_are_visible(target_relation, settings) %}
    {% do adapter.load_runner(target_relation).check_creation(target_relation) %}
    {% do sparkevolve__tell_of_dead_letters(target_relation) %}
    {% do sparkevolve__unset_gone_metrics(target_relation) %}
    {% do sparkevolve__grant_and_describe(target_relation, existing_relation, full_refresh) %}
    {% do sparkevolve__store_defaults(target_relation, settings) %}
  {% endif %}

  {% do persist_constraints(target_relation, model) %}
  {% do sparkevolve__run_post_hooks() %}
  {% do sparkevolve__store_response(target_relation) %}
  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}
