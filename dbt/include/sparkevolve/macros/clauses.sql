{# The clauses of CREATE TABLE and CREATE VIEW. dbt-spark escapes quotes at the most, and Spark reads backslashes too:
   here each text is a literal of ours, and each name is in backticks. #}

{# What the node's configuration has under a name, first of all under `meta.sparkevolve`. #}
{% macro sparkevolve__config(name) %}
  {% set own = (config.get('meta') or {}).get('sparkevolve') or {} %}
  {% do return(own[name] if own is mapping and name in own else config.get(name)) %}
{% endmacro %}


{# The format of the node's table. dbt-spark's macros each have a default of their own. #}
{% macro sparkevolve__file_format() %}
  {% do return(sparkevolve__config('file_format') or 'iceberg') %}
{% endmacro %}


{# Whether the node's table is an Iceberg table of a catalog that the profile states: PyIceberg commits to it. #}
{% macro sparkevolve__is_managed(relation) %}
  {% do return(sparkevolve__file_format() == 'iceberg' and adapter.checks().is_in_stated_catalog(relation)) %}
{% endmacro %}


{# What the model's table is partitioned by; under `partitioned_by` where the model has dbt-athena's name of it. #}
{% macro sparkevolve__partition_by() %}
  {% do return(sparkevolve__config('partition_by') or sparkevolve__config('partitioned_by')) %}
{% endmacro %}


{# See whether a table that is made from a query can be partitioned as the node says, before anything is dropped for it. #}
{% macro sparkevolve__check_partitions(relation, sql) %}
  {% if sparkevolve__is_managed(relation) %}
    {% do adapter.queries().check_partitions(
      relation, sql, sparkevolve__partition_by(), sparkevolve__config('clustered_by'), sparkevolve__config('buckets')
    ) %}
  {% endif %}
{% endmacro %}


{# What CREATE TABLE says between the name of the node's table, or its columns, and the query. #}
{% macro sparkevolve__creation_clauses() %}
    {{ file_format_clause() }}
    {{ options_clause() }}
    {{ tblproperties_clause() }}
    {{ partition_cols(label="partitioned by") }}
    {{ clustered_cols(label="clustered by") }}
    {{ location_clause() }}
    {{ comment_clause() }}
{%- endmacro %}


{# Where the catalog makes no table with its rows, make it empty, unless it is there; return whether what makes the table
   has to replace the empty one, in one commit, which nobody can tell from a table that was made with its rows. #}
{% macro sparkevolve__begin_creation(relation, sql, clauses, is_new=false) %}
  {% if not sparkevolve__is_managed(relation) %}
    {% do return(false) %}
  {% endif %}
  {% do return(adapter.load_runner(relation).begin_creation(relation, sql, clauses, is_new=is_new)) %}
{% endmacro %}


{# Before what is in a table's place is dropped, see whether readers would see the rows of the new one. #}
{% macro sparkevolve__refuse_hidden(relation, clauses) %}
  {% if sparkevolve__is_managed(relation) %}
    {% do adapter.load_runner(relation).refuse_hidden(relation, clauses) %}
  {% endif %}
{% endmacro %}


{% macro sparkevolve__file_format_clause() %}
  using {{ adapter.clauses().format_name(sparkevolve__file_format()) }}
{%- endmacro -%}


{% macro sparkevolve__tblproperties_clause() %}
  {%- if sparkevolve__file_format() == 'iceberg' -%}
    {{ sparkevolve__tblproperties(
      adapter.clauses().table_properties(sparkevolve__config('tblproperties'), this, adapter.node().creation())
    ) }}
  {%- elif sparkevolve__config('tblproperties') -%}
    {{ sparkevolve__tblproperties(sparkevolve__config('tblproperties')) }}
  {%- endif -%}
{%- endmacro -%}


{% macro sparkevolve__tblproperties(properties) -%}
  tblproperties (
    {%- for name, value in properties.items() -%}
      {{ adapter.clauses().string_literal(name) }} = {{ adapter.clauses().string_literal(value | string) }}{{ ', ' if not loop.last }}
    {%- endfor -%}
  )
{%- endmacro -%}


{% macro sparkevolve__comment_clause() %}
  {%- if config.persist_relation_docs() and model.description -%}
    comment {{ adapter.clauses().string_literal(model.description) }}
  {%- endif -%}
{%- endmacro -%}


{% macro sparkevolve__location_clause() %}
  {{ sparkevolve__location_sql(sparkevolve__place(this)) }}
{%- endmacro -%}


{% macro sparkevolve__location_sql(location) %}
  {%- if location -%}
    location {{ adapter.clauses().string_literal(location) }}
  {%- endif -%}
{%- endmacro -%}


{# Where a new table of the node is to be: as configured, or in its schema's folder, if the catalog wants to be told. #}
{% macro sparkevolve__place(relation) %}
  {%- do return(adapter.clauses().location(relation) if sparkevolve__location() is none else sparkevolve__location()) -%}
{%- endmacro -%}


{# Where the node's table is configured to be; none if the catalog chooses. #}
{% macro sparkevolve__location() %}
  {%- if sparkevolve__config('location_root') is not none -%}
    {%- do return(sparkevolve__config('location_root') ~ '/' ~ model['alias']) -%}
  {%- endif -%}
  {%- do return(none) -%}
{%- endmacro -%}


{# Before anything is dropped to be made with them. #}
{% macro sparkevolve__warn_of_options() %}
  {% if sparkevolve__file_format() == 'hudi' %}
    {% set warning = adapter.clauses().other_primary_key(
      sparkevolve__config('options') or {}, sparkevolve__config('unique_key')
    ) %}
    {% do sparkevolve__warn([warning] if warning else [], model.unique_id) %}
  {% endif %}
{% endmacro %}


{% macro sparkevolve__options_clause() %}
  {%- set options = dict(sparkevolve__config('options') or {}) -%}
  {%- if sparkevolve__config('file_format') == 'hudi' and sparkevolve__config('unique_key') -%}
    {%- do options.setdefault('primaryKey', sparkevolve__as_list(sparkevolve__config('unique_key')) | join(',')) -%}
  {%- endif -%}
  {%- if options -%}
    options (
      {%- for name, value in options.items() -%}
        {{ adapter.clauses().string_literal(name | string) }} = {{ adapter.clauses().option_literal(value | string) }}
        {{- ', ' if not loop.last }}
      {%- endfor -%}
    )
  {%- endif -%}
{%- endmacro -%}


{% macro sparkevolve__partition_cols(label, required=false) %}
  {%- if sparkevolve__partition_by() -%}
    {{ label }} ({{ adapter.clauses().partition_sql(sparkevolve__partition_by()) }})
  {%- endif -%}
{%- endmacro -%}


{% macro sparkevolve__clustered_cols(label, required=false) %}
  {%- if sparkevolve__config('clustered_by') and sparkevolve__config('buckets') -%}
    {{ label }} ({{ adapter.clauses().partition_sql(sparkevolve__config('clustered_by')) }}) into {{ sparkevolve__config('buckets') | int }} buckets
  {%- endif -%}
{%- endmacro -%}


{% macro sparkevolve__create_view_as(relation, sql) -%}
  {%- do adapter.checks().views(relation, model.unique_id) %}
  create or replace view {{ relation }}
  {{ sparkevolve__view_columns(sql) if config.persist_column_docs() }}
  {{ comment_clause() }}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
  {%- endif %}
  as
  {{ sql }}
{%- endmacro %}


{% macro sparkevolve__view_columns(sql) -%}
  {%- set docs = {} -%}
  {%- for name, column in model.columns.items() -%}
    {%- do docs.update({name | lower: column['description']}) -%}
  {%- endfor -%}
  (
    {%- for name in get_columns_in_query(sql) -%}
      {{ adapter.quote(name) }}
      {%- if docs.get(name | lower) %} comment {{ adapter.clauses().string_literal(docs[name | lower]) }}{% endif -%}
      {{ ', ' if not loop.last }}
    {%- endfor -%}
  )
{%- endmacro %}


{# Where descriptions take a statement of their own: in another format, and in a catalog that the profile does not state. #}
{% macro sparkevolve__alter_column_comment(relation, column_dict) %}
  {% if sparkevolve__file_format() in ['delta', 'hudi', 'iceberg'] %}
    {% for name, column in column_dict.items() %}
      {% call statement('alter_column_comment') %}
        alter table {{ relation }} change column {{ adapter.quote(name) }}
        comment {{ adapter.clauses().string_literal(column['description']) }}
      {% endcall %}
    {% endfor %}
  {% endif %}
{% endmacro %}


{# dbt's unit tests write their rows with it. #}
{% macro sparkevolve__escape_single_quotes(expression) -%}
  {{ expression | replace('\\', '\\\\') | replace("'", "\\'") }}
{%- endmacro %}
