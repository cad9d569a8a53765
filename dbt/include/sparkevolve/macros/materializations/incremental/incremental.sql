{% materialization incremental, adapter='sparkevolve', supported_languages=['sql'] -%}
  {%- set full_refresh = should_full_refresh() -%}
  {%- set settings = sparkevolve__incremental_settings(full_refresh) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set is_new = sparkevolve__is_new(existing_relation, settings, full_refresh) -%}

  {%- if sparkevolve__is_plan_only() -%}
    {% do sparkevolve__print_plan(target_relation, settings, is_new) %}
    {{ return({'relations': [target_relation] if existing_relation is not none else []}) }}
  {%- endif -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% do adapter.drop_abandoned_staging(target_relation) %}

  {% if not is_new %}
    {% do sparkevolve__load_existing(target_relation, settings) %}
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
