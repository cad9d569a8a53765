{# What is not incremental is left alone by `sparkevolve_plan_only`, and is dbt-spark's otherwise. #}

{% materialization table, adapter='sparkevolve', supported_languages=['sql', 'python'] -%}
  {{ return(sparkevolve__unless_plan_only(materialization_table_spark, hooks_outside=true)) }}
{%- endmaterialization %}

{% materialization view, adapter='sparkevolve' -%}
  {{ return(sparkevolve__unless_plan_only(materialization_view_spark, hooks_outside=true)) }}
{%- endmaterialization %}

{% materialization seed, adapter='sparkevolve' -%}
  {% if sparkevolve__is_plan_only() %}
    {# dbt asks for a seed's rows afterwards. #}
    {% do store_result('agate_table', response='OK', agate_table=load_agate_table()) %}
  {% endif %}
  {{ return(sparkevolve__unless_plan_only(materialization_seed_default)) }}
{%- endmaterialization %}

{% materialization snapshot, adapter='sparkevolve' -%}
  {{ return(sparkevolve__unless_plan_only(materialization_snapshot_spark)) }}
{%- endmaterialization %}


{# dbt-spark's tables and views leave out the hooks with `transaction: false`; its seeds and snapshots run them. #}
{% macro sparkevolve__unless_plan_only(materialize, hooks_outside=false) %}
  {% if sparkevolve__is_plan_only() %}
    {% do sparkevolve__nothing_run('not incremental, not run') %}
    {% do return({'relations': []}) %}
  {% endif %}
  {% if hooks_outside %}
    {% do run_hooks(pre_hooks, inside_transaction=False) %}
  {% endif %}
  {% set made = materialize() %}
  {% if hooks_outside %}
    {% do run_hooks(post_hooks, inside_transaction=False) %}
  {% endif %}
  {% do return(made) %}
{% endmacro %}
