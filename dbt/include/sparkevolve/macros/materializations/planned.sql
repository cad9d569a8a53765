{# What is not incremental is left alone by `sparkevolve_plan_only`, and is dbt-spark's otherwise. #}

{% materialization table, adapter='sparkevolve', supported_languages=['sql', 'python'] -%}
  {{ return(sparkevolve__unless_plan_only(materialization_table_spark)) }}
{%- endmaterialization %}

{% materialization view, adapter='sparkevolve' -%}
  {{ return(sparkevolve__unless_plan_only(materialization_view_spark)) }}
{%- endmaterialization %}

{% materialization seed, adapter='sparkevolve' -%}
  {{ return(sparkevolve__unless_plan_only(materialization_seed_default)) }}
{%- endmaterialization %}

{% materialization snapshot, adapter='sparkevolve' -%}
  {{ return(sparkevolve__unless_plan_only(materialization_snapshot_spark)) }}
{%- endmaterialization %}


{% macro sparkevolve__unless_plan_only(materialize) %}
  {% if sparkevolve__is_plan_only() %}
    {% do sparkevolve__nothing_run('not incremental, not run') %}
    {% do return({'relations': []}) %}
  {% endif %}
  {% do return(materialize()) %}
{% endmacro %}
