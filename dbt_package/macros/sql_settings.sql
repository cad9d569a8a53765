{# Settings of a Spark session under which what this package writes would mean something else. They are the adapter's, but
   for a session that all connections share. #}


{# Each with its name, the value that is refused, and why. #}
{% macro refused_settings() %}
  {% do return([
    ['spark.sql.caseSensitive', 'true',
     'Columns are matched by name whatever the case, as Spark does by default: with it, `ID` and `id` '
     ~ 'would be two columns to Spark, and a run would fail half-way.'],
    ['spark.sql.parser.quotedRegexColumnNames', 'true',
     'With it a name in backticks is a pattern that several columns can match, and all names are written '
     ~ 'in backticks.'],
    ['spark.sql.legacy.typeCoercion.datetimeToString.enabled', 'true',
     'With it dates and times are compared with texts as texts, so that the batches of a microbatch model '
     ~ 'would have other rows than they replace.'],
    ['spark.sql.storeAssignmentPolicy', 'LEGACY',
     'Spark inserts no row into an Iceberg table with it: a first run would succeed, the next ones fail.']
  ]) %}
{% endmacro %}


{# What is wrong with the settings of this session. #}
{% macro wrong_settings() %}
  {% set found = [] %}
  {% for name, refused, why in sparkevolve.refused_settings() %}
    {% set value = sparkevolve.spark_setting(name, '') %}
    {% if value | trim | lower == refused | lower %}
      {% do found.append('The Spark setting `' ~ name ~ '` is `' ~ value ~ '`. ' ~ why) %}
    {% endif %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{% macro check_sql_settings() %}
  {% for text in sparkevolve.wrong_settings() %}
    {% do exceptions.raise_compiler_error(
      text ~ ' Nothing was run with it: take it out of the profile, of the hook that sets it, or of the server\'s '
      ~ 'configuration.'
    ) %}
  {% endfor %}
{% endmacro %}


{# After the pre-hooks of a model, which may set something. In a session that connections share, such as that of the dbt
   process (`method: session`, which no macro is told of), so may those of others; each other connection begins as the one
   did that the beginning of the dbt command has asked. #}
{% macro check_sql_settings_of_model() %}
  {% if pre_hooks or sparkevolve.has_shared_session() %}
    {% do sparkevolve.check_sql_settings() %}
  {% endif %}
{% endmacro %}
