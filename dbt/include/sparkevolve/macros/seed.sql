{% macro sparkevolve__create_csv_table(model, agate_table) %}
  {%- set column_types = model['config'].get('column_types', {}) -%}
  {% set sql %}
    create table {{ this }} (
      {%- for name in agate_table.column_names %}
      {%- set type = column_types.get(name) or adapter.convert_type(agate_table, loop.index0) %}
      {{ adapter.quote(name) }} {{ adapter.type_name(name, type) }}{{ ',' if not loop.last }}
      {%- endfor %}
    )
    {{ file_format_clause() }}
    {{ tblproperties_clause() }}
    {{ partition_cols(label="partitioned by") }}
    {{ location_clause() }}
    {{ comment_clause() }}
  {% endset %}
  {% call statement('create_seed') -%}
    {{ sql }}
  {%- endcall %}
  {{ return(sql) }}
{% endmacro %}


{% macro sparkevolve__load_csv_rows(model, agate_table) %}
  {% set statements = adapter.seed_statements(this, agate_table, model['config'].get('column_types', {})) %}
  {% for sql in statements %}
    {% do adapter.add_query(sql, abridge_sql_log=True) %}
  {% endfor %}
  {{ return(statements | first or '') }}
{% endmacro %}
