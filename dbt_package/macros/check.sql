{# `dbt run-operation sparkevolve.check`: what the server and the project have of what this package needs, and what each
   lack costs. It makes a small table in the target's schema, and drops it. A statement that fails ends it, as dbt lets a
   macro catch no error: the last line that is shown says what was tried. The table then stays, until another check has
   dropped its own, an hour later at the earliest. #}
{% macro check() %}
  {% if not execute %}
    {% do return('') %}
  {% endif %}
  {% do sparkevolve.say('dbt ' ~ dbt_version ~ ', target ' ~ target.name ~ ' of type ' ~ target.type) %}
  {% if target.type != 'spark' %}
    {% do sparkevolve.say('This package is for dbt-spark. ' ~ (
      'dbt-sparkevolve does all of it itself, and more.' if target.type == 'sparkevolve' else 'Nothing was asked.'
    )) %}
    {% do return('') %}
  {% endif %}
  {% set lacks = [] %}
  {% do sparkevolve.check_project(lacks) %}
  {% set server = sparkevolve.check_server(lacks) %}
  {# At once, since a right that is lacking ends this macro. #}
  {% for lack in lacks %}
    {% do sparkevolve.say('Missing: ' ~ lack) %}
  {% endfor %}
  {% do sparkevolve.check_rights(server, lacks) %}
  {% do sparkevolve.say(sparkevolve.losses_text()) %}
  {% if lacks %}
    {% do exceptions.raise_compiler_error('What is missing:\n  * ' ~ lacks | join('\n  * ')) %}
  {% endif %}
  {% do sparkevolve.say('Nothing is missing.') %}
{% endmacro %}


{% macro say(text) %}
  {% do log('sparkevolve: ' ~ text, info=True) %}
{% endmacro %}


{# The one line for each run that says what a run with the adapter would have beside it. #}
{% macro losses_text() %}
  {% do return(
    'Beside the adapter, the package does without: one commit for all changes of a schema, and its record; warnings on '
    ~ 'columns that somebody has dropped; tables of uuid and fixed columns under their own types; a clean-up when a node '
    ~ 'fails. The README of the package has the whole list.'
  ) %}
{% endmacro %}


{% macro check_project(lacks) %}
  {% if sparkevolve.has_override() %}
    {% do sparkevolve.say('The project has the wrapper that hands incremental models to this package') %}
  {% else %}
    {% do lacks.append(sparkevolve.override_text(['all incremental models'])) %}
  {% endif %}
  {% for node in graph.nodes.values()
        if node.resource_type == 'model' and node.config.materialized == 'incremental'
        and (node.config.get('file_format') or 'iceberg') != 'iceberg' %}
    {% do lacks.append(
      node.unique_id ~ ' has `file_format: ' ~ node.config.file_format ~ '`: incremental models of this package are '
      ~ 'Iceberg tables'
    ) %}
  {% endfor %}
{% endmacro %}


{# Returns the `catalog`, whether it `is_iceberg`, and whether there are `branches`. #}
{% macro check_server(lacks) %}
  {% do sparkevolve.say('Spark ' ~ sparkevolve.rows('select version()')[0][0]) %}
  {% set current = sparkevolve.rows('select current_catalog()')[0][0] %}
  {% set catalog = sparkevolve.catalog_of(target.schema ~ '.t', current) %}
  {% set class = sparkevolve.spark_setting('spark.sql.catalog.' ~ catalog, '') %}
  {% set which = 'The default catalog' if catalog == current else 'The catalog of the schema' %}
  {% do sparkevolve.say(which ~ ' is `' ~ catalog ~ '`, ' ~ (class or 'the built-in one')) %}
  {% if 'iceberg' not in class %}
    {% do lacks.append(
      'The catalog `' ~ catalog ~ '` is not one of Iceberg, and dbt-spark knows names of two parts only: set '
      ~ '`spark.sql.defaultCatalog` on the server, or in `server_side_parameters` of the profile, to an Iceberg catalog, or '
      ~ 'write its name before the `schema` of the profile (`lake.shop`). Without it nothing of this package works'
    ) %}
  {% endif %}
  {% set branches = 'IcebergSparkSessionExtensions' in sparkevolve.spark_setting('spark.sql.extensions', '') %}
  {% if branches %}
    {% do sparkevolve.say("Iceberg's SQL extensions are there: runs are published from branches") %}
  {% else %}
    {% do lacks.append(
      "Iceberg's SQL extensions: add `org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions` to "
      ~ '`spark.sql.extensions` of the server. Without them there are no branches, and each model needs `publish: direct`: '
      ~ 'readers see a run half done, and a statement that is sent twice may add rows twice'
    ) %}
  {% endif %}
  {% do lacks.extend(sparkevolve.wrong_settings()) %}
  {% if sparkevolve.has_one_session() %}
    {% do sparkevolve.say(
      'All connections share one session of this Spark: models that overwrite partitions load again where another has '
      ~ 'changed how that works, and `publish: direct` is refused for them'
    ) %}
  {% endif %}
  {% do return({'catalog': catalog, 'is_iceberg': 'iceberg' in class, 'branches': branches}) %}
{% endmacro %}


{# Rights are seen by using them. #}
{% macro check_rights(server, lacks) %}
  {% if not server.is_iceberg %}
    {% do sparkevolve.say('Rights were not tried, since there is no Iceberg catalog') %}
    {% do return('') %}
  {% endif %}
  {% set name = target.schema ~ '.sparkevolve_check_' ~ local_md5(invocation_id)[:12] %}
  {% set written = sparkevolve.branch_of(name, 'tried') if server.branches else name %}
  {% set steps = [
    ['CREATE SCHEMA', 'create schema if not exists ' ~ target.schema],
    ['CREATE TABLE', 'create or replace table ' ~ name ~ ' using iceberg '
      ~ sparkevolve.pairs_clause('tblproperties', sparkevolve.staged_properties()) ~ ' as select 1 as id'],
    ['ALTER TABLE, which adds columns', 'alter table ' ~ name ~ ' add columns (`note` string)'],
    ['SHOW CREATE TABLE', 'show create table ' ~ name],
    ['CREATE BRANCH', sparkevolve.create_branch(name, 'tried', none, 60) if server.branches else none],
    ['INSERT', 'insert into ' ~ written ~ ' select 2, cast(null as string)'],
    ['DELETE', 'delete from ' ~ written ~ ' where id = 1'],
    ['metadata tables', 'select * from ' ~ name ~ '.refs'],
    ['CALL fast_forward', sparkevolve.fast_forward(server.catalog, name, 'main', 'tried') if server.branches else none],
    ['DROP TABLE', 'drop table ' ~ name ~ ' purge']
  ] %}
  {% for what, sql in steps if sql is not none %}
    {% do sparkevolve.say('Trying ' ~ what ~ ' in the schema ' ~ target.schema) %}
    {% do sparkevolve.run_statement(sql, 'check') %}
    {% if what == 'CREATE TABLE' %}
      {% do sparkevolve.check_listing(name, lacks) %}
    {% endif %}
  {% endfor %}
  {% do sparkevolve.remove_left_behind(sparkevolve.tables_of_checks(target.schema), 1, 'a check') %}
{% endmacro %}


{# dbt knows a table by its being listed. #}
{% macro check_listing(name, lacks) %}
  {% set identifier = name.split('.') | last %}
  {% for row in sparkevolve.rows('show tables in ' ~ target.schema) if row[1] == identifier %}
    {% do return('') %}
  {% endfor %}
  {% set lack = 'A listing: `show tables in ' ~ target.schema ~ '` has not the table that was just made there. To dbt, each run of a '
    ~ 'model is its first one then, and all but that fail. An `org.apache.iceberg.spark.SparkSessionCatalog` lists the tables '
    ~ "of Spark's own metastore, and with `type: hadoop` Iceberg's are not in it: let whoever runs the server give it "
    ~ '`type: hive`, or set `spark.sql.defaultCatalog` to an `org.apache.iceberg.spark.SparkCatalog` of another name' %}
  {% do sparkevolve.say('Missing: ' ~ lack) %}
  {% do lacks.append(lack) %}
{% endmacro %}
