{# dbt lets no package replace a built-in materialization: a wrapper in the project has to. Without it, dbt-spark's own
   would run, without a word, and lose columns. `dbt_project.yml` of this package asks before each run. #}


{# Fail the run if there are incremental models, and nothing in the project that hands them to this package. #}
{% macro require_override() %}
  {% if not execute or target.type != 'spark' %}
    {# dbt-sparkevolve has a materialization of its own, which goes before the wrapper. #}
    {% do return('') %}
  {% endif %}
  {% set models = [] %}
  {% for node in graph.nodes.values()
        if node.resource_type == 'model' and node.config.materialized == 'incremental' %}
    {% do models.append(node.unique_id) %}
  {% endfor %}
  {% if models and not sparkevolve.has_override() %}
    {% do exceptions.raise_compiler_error(sparkevolve.override_text(models)) %}
  {% elif models %}
    {% do sparkevolve.note_variables() %}
    {% do sparkevolve.mark_session() %}
    {% do sparkevolve.say(sparkevolve.losses_text()) %}
  {% endif %}
  {% do return('') %}
{% endmacro %}


{# Whether the project has a materialization that goes before dbt-spark's. #}
{% macro has_override() %}
  {% set macros = context.get(project_name) %}
  {% do return(macros is mapping and 'materialization_incremental_spark' in macros) %}
{% endmacro %}


{% macro override_text(models) %}
  {% do return(
    'The package sparkevolve is installed, and the project has no wrapper that hands incremental models to it: '
    ~ "dbt-spark's own materialization would run " ~ models | sort | join(', ') ~ ', and drop what it does not know. '
    ~ 'Write this into a file of the project, such as macros/incremental.sql, and run again:\n\n'
    ~ '{' ~ "% materialization incremental, adapter='spark' %" ~ '}\n  {' ~ '{ return(sparkevolve.incremental()) }' ~ '}\n'
    ~ '{' ~ '% endmaterialization %' ~ '}\n\nNothing was run.'
  ) %}
{% endmacro %}
