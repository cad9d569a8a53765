{# dbt's `catalog_name` of a model, seed or snapshot is the name of a catalog of the profile, too. #}
{% macro sparkevolve__generate_database_name(custom_database_name=none, node=none) -%}
  {% set named = node.config.get('catalog_name') if node and node.config and node.config.get else none %}
  {% do return(custom_database_name | trim if custom_database_name else named or target.database) %}
{%- endmacro %}


{# `current_timestamp()` is no call where `spark.sql.ansi.enforceReservedKeywords` reserves the name. #}
{% macro sparkevolve__current_timestamp() -%}
  now()
{%- endmacro %}


{# dbt hands the database over quoted from one place and bare from another. #}
{% macro sparkevolve__list_schemas(database) -%}
  {% call statement('list_schemas', fetch_result=True, auto_begin=False) %}
    show databases in {{ adapter.quote((database or target.database) | replace('`', '')) }}
  {% endcall %}
  {{ return(load_result('list_schemas').table) }}
{%- endmacro %}


{# Descriptions of a view are part of CREATE VIEW; other formats, and catalogs not in the profile, are dbt-spark's concern. #}
{% macro sparkevolve__persist_docs(relation, model, for_relation, for_columns) -%}
  {%- if relation.is_view -%}
  {%- elif not sparkevolve__is_managed(relation) -%}
    {% do spark__persist_docs(relation, model, for_relation, for_columns) %}
  {%- else -%}
    {% set comment = model.description if for_relation and config.persist_relation_docs() else none %}
    {% set docs = sparkevolve__column_docs() if for_columns else {} %}
    {% if docs %}
      {# Warns of those that the table does not have. #}
      {% set existing = adapter.get_columns_in_relation(relation) | map(attribute='name') | list %}
      {% set known = validate_doc_columns(relation, model.columns, existing) %}
      {% set docs = sparkevolve__descriptions(known) %}
    {% endif %}
    {% if comment is not none or docs %}
      {% do adapter.persist_iceberg_docs(relation, comment, docs, config) %}
    {% endif %}
  {%- endif -%}
{%- endmacro %}


{# Where warnings are errors, see before a table is made whether it will have all columns that are described. The names of
   its columns are asked for if none are given. #}
{% macro sparkevolve__check_described(relation, sql, names=[]) %}
  {% if config.persist_column_docs() %}
    {% do adapter.preview().refuse_warned_descriptions(relation, model.columns, sql, names) %}
  {% endif %}
{% endmacro %}


{# Descriptions by column name, if the model wants them stored. #}
{% macro sparkevolve__column_docs() -%}
  {% do return(sparkevolve__descriptions(model.columns) if config.persist_column_docs() else {}) %}
{%- endmacro %}


{% macro sparkevolve__descriptions(columns) -%}
  {% set docs = {} %}
  {% for name, column in columns.items() %}
    {% do docs.update({name: column['description']}) %}
  {% endfor %}
  {% do return(docs) %}
{%- endmacro %}


{# Spark enforces no constraint on an Iceberg table but NOT NULL, and a column that may go from the model
   must be free to be padded. #}
{% macro sparkevolve__persist_constraints(relation, model) %}
  {%- if sparkevolve__file_format() != 'iceberg' -%}
    {% do spark__persist_constraints(relation, model) %}
  {%- else -%}
    {% set said = adapter.load_runner().not_null_not_applied(relation, sparkevolve__not_null_columns()) %}
    {% if said %}
      {% do log(said, info=True) %}
    {% endif %}
  {%- endif -%}
{% endmacro %}


{# The columns for which an enforced contract has `not_null`, in a column's constraints or in the model's. #}
{% macro sparkevolve__not_null_columns() %}
  {% set found = [] %}
  {% if config.get('contract').enforced %}
    {% for column in model.columns.values() if column.constraints | selectattr('type', 'equalto', 'not_null') | list %}
      {% do found.append(column.name) %}
    {% endfor %}
    {% for constraint in model.constraints if constraint.type == 'not_null' %}
      {% do found.extend(constraint.columns) %}
    {% endfor %}
  {% endif %}
  {% do return(found) %}
{% endmacro %}


{# Rendered, since under `--empty` a relation stands for a subquery. #}
{% macro sparkevolve__alter_column_type(relation, column_name, new_column_type) -%}
  {% call statement('alter_column_type') %}
    alter table {{ relation.render() }} alter column {{ adapter.quote(column_name) }} type {{ new_column_type }}
  {% endcall %}
{% endmacro %}


{# The new name is looked for inside the catalog already: with its own it would be a namespace too deep. #}
{% macro sparkevolve__rename_relation(from_relation, to_relation) -%}
  {% if (to_relation.database or target.database) != (from_relation.database or target.database) %}
    {% do exceptions.raise_compiler_error(
      from_relation ~ ' cannot be renamed to ' ~ to_relation ~ ', which is in another catalog. Nothing was renamed.'
    ) %}
  {% endif %}
  {% do adapter.checks().renaming(from_relation) %}
  {% call statement('rename_relation') -%}
    alter {{ 'view' if from_relation.is_view else 'table' }} {{ from_relation }}
    rename to {{ to_relation.include(database=false) }}
  {%- endcall %}
{%- endmacro %}


{# dbt-spark's returns the rows of DESCRIBE, which have no `name`: dbt's snapshots then take every column for new. #}
{% macro sparkevolve__get_columns_in_relation(relation) -%}
  {% do return(adapter.get_columns_in_relation(relation)) %}
{%- endmacro %}
