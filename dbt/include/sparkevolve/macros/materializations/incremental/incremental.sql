{% materialization incremental, adapter='sparkevolve', supported_languages=['sql'] -%}
  {%- set settings = sparkevolve__incremental_settings() -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set full_refresh = should_full_refresh() -%}
  {%- set is_new = existing_relation is none or existing_relation.is_view or full_refresh -%}

  {%- if sparkevolve__is_plan_only() -%}
    {% do sparkevolve__print_plan(target_relation, settings, is_new) %}
    {{ return({'relations': [target_relation] if existing_relation is not none else []}) }}
  {%- endif -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% do adapter.drop_abandoned_staging(target_relation) %}

  {% if not is_new %}
    {% set columns = adapter.target_columns(target_relation) %}
    {% do sparkevolve__refresh(target_relation) %}
    {% set staged = sparkevolve__stage_batch(target_relation, settings, columns) %}
    {% do sparkevolve__check_schema_change(target_relation, staged, settings) %}
    {% set load = adapter.evolve(target_relation, staged, settings, sparkevolve__column_docs()) %}
    {% do sparkevolve__log_evolution(target_relation, load) %}
    {% do sparkevolve__refresh(target_relation) %}
    {% do sparkevolve__publish_directly(load) %}
  {% elif existing_relation is not none and not existing_relation.is_iceberg %}
    {% do sparkevolve__replace_other(target_relation, existing_relation, settings) %}
  {% else %}
    {% do sparkevolve__create_from_model(target_relation, existing_relation, settings) %}
  {% endif %}

  {% set should_revoke = should_revoke(existing_relation, full_refresh_mode=full_refresh) %}
  {% do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke) %}
  {% do persist_docs(target_relation, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}
