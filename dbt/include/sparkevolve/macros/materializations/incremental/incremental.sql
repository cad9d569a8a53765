{% materialization incremental, adapter='sparkevolve', supported_languages=['sql'] -%}
  {%- set settings = sparkevolve__incremental_settings() -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set full_refresh = should_full_refresh() -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% do adapter.drop_abandoned_staging(target_relation) %}

  {% if existing_relation is none or full_refresh %}
    {% do sparkevolve__create_from_model(target_relation, existing_relation, settings) %}
  {% elif existing_relation.is_view %}
    {% do sparkevolve__replace_view(target_relation, existing_relation, settings) %}
  {% else %}
    {% do adapter.check_target(target_relation) %}
    {% set staged = sparkevolve__stage_batch(target_relation) %}
    {% do sparkevolve__check_schema_change(target_relation, staged, settings) %}
    {% set load = adapter.evolve(target_relation, staged, settings, sparkevolve__column_docs()) %}
    {% do sparkevolve__log_evolution(target_relation, load) %}
    {% do sparkevolve__refresh(target_relation) %}
    {% do sparkevolve__publish_directly(load) %}
  {% endif %}

  {% set should_revoke = should_revoke(existing_relation, full_refresh_mode=full_refresh) %}
  {% do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke) %}
  {% do persist_docs(target_relation, model) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}
