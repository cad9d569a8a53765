{# dbt lets no package replace a built-in materialization: a wrapper in the project has to. Without it, dbt-spark's own
   would run, without a word, and lose columns. `dbt_project.yml` of this package asks before each run. #}


{# Fail the run if there are incremental models, and nothing in the project that hands them to this package. #}
{% macro require_override() %}
  {% if not execute or target.type == 'sparkevolve' %}
    {# dbt-sparkevolve has a materialization of its own, which goes before the wrapper. #}
    {% do return('') %}
  {% endif %}
  {% set models = [] %}
  {% for node in graph.nodes.values()
        if node.resource_type == 'model' and node.config.materialized == 'incremental' %}
    {% do models.append(node.unique_id) %}
  {% endfor %}
  {% if models and target.type != 'spark' %}
    {% do sparkevolve.say(
      'This package is for dbt-spark, and does nothing on the target ' ~ target.name ~ ', which is of type ' ~ target.type
      ~ ': the materialization of that adapter runs incremental models.'
    ) %}
  {% elif models and not sparkevolve.has_override() %}
    {% do exceptions.raise_compiler_error(sparkevolve.override_text(models)) %}
  {% elif models %}
    {% do sparkevolve.check_sql_settings() %}
    {% do sparkevolve.note_variables() %}
    {% do sparkevolve.mark_session() %}
    {% do sparkevolve.note_tables(models) %}
    {% do sparkevolve.say(sparkevolve.losses_text()) %}
  {% endif %}
  {% do return('') %}
{% endmacro %}


{# Tell dbt of the tables of models that are to run, and of snapshots. dbt-spark asks for all that is in a schema at once, and
   takes the schema for an empty one if a table goes meanwhile, such as the staged batch of another job: each model would run
   as if for the first time, and a snapshot be made again over the one that is there. What dbt knows already stays as it is.
   Hive's metastore and Glue list each name in lower case. #}
{% macro note_tables(models) %}
  {% set by_schema, snapshots = {}, [] %}
  {% for node in graph.nodes.values() if node.resource_type == 'snapshot' %}
    {% do snapshots.append(node.unique_id) %}
  {% endfor %}
  {% for id in models + snapshots if id in selected_resources %}
    {% set node = graph.nodes[id] %}
    {% do by_schema.update({node.schema: by_schema.get(node.schema, []) + [node.alias, node.alias | lower]}) %}
  {% endfor %}
  {% for schema, names in by_schema.items() if adapter.cache_added is defined %}
    {# Temporary views, which are in no schema, are listed too. #}
    {% for row in sparkevolve.rows('show tables in ' ~ schema) if row[0] and row[1] in names %}
      {% set relation = api.Relation.create(schema=schema, identifier=row[1], type='table') %}
      {# A schema that dbt has not listed yet (`--no-populate-cache`) is listed here. It would not be later: with one table
         of it, dbt takes it for listed. #}
      {% if load_relation(relation) is none %}
        {# dbt-spark has no snapshot in a table of which it does not know the format. #}
        {% set is_iceberg = sparkevolve.is_iceberg_table(relation) %}
        {% do adapter.cache_added(relation.incorporate(is_iceberg=is_iceberg)) %}
      {% endif %}
    {% endfor %}
  {% endfor %}
{% endmacro %}


{# Whether the project has a materialization that goes before dbt-spark's, and hands models to this package: itself, or by
   other macros, of the project or of a package. Where dbt does not let macros be read (dbt v2), any one counts. #}
{% macro has_override() %}
  {% set macros = context.get(project_name) %}
  {% if macros is not mapping or 'materialization_incremental_spark' not in macros %}
    {% do return(false) %}
  {% endif %}
  {% set wrapper = macros['materialization_incremental_spark'] %}
  {% if wrapper.macro is not defined or wrapper.macro.depends_on is not defined %}
    {% do return(true) %}
  {% endif %}
  {% set called = wrapper.macro.depends_on.macros | list %}
  {# What these call is looked at in turn: the list grows while the loop goes through it. #}
  {% for id in called %}
    {% set found = context.get(id.split('.')[1]) %}
    {% set other = found.get(id.split('.') | last) if found is mapping else none %}
    {% if other is not none and other.macro is defined %}
      {% do called.extend(other.macro.depends_on.macros | reject('in', called) | list) %}
    {% endif %}
  {% endfor %}
  {% do return('macro.sparkevolve.incremental' in called) %}
{% endmacro %}


{% macro override_text(models) %}
  {% set names = models | sort | join(', ') %}
  {% set has_other = 'materialization_incremental_spark' in (context.get(project_name) or {}) %}
  {% set why = (
    'the materialization `incremental` of the project does not call `sparkevolve.incremental()`: it would run ' ~ names
    ~ ', and this package would have no part in that. Write the wrapper in its place, or take the package out. The wrapper is:'
  ) if has_other else (
    "the project has no wrapper that hands incremental models to it: dbt-spark's own materialization would run " ~ names
    ~ ', and drop what it does not know. Write this into a file of the project, such as macros/incremental.sql, and run again:'
  ) %}
  {% do return(
    'The package sparkevolve is installed, and ' ~ why ~ '\n\n'
    ~ '{' ~ "% materialization incremental, adapter='spark' %" ~ '}\n  {' ~ '{ return(sparkevolve.incremental()) }' ~ '}\n'
    ~ '{' ~ '% endmaterialization %' ~ '}\n\nNothing was run.'
  ) %}
{% endmacro %}
