{% macro sparkevolve__get_binding_char() %}
  {{ return('?' if target.method == 'session' else '%s') }}
{% endmacro %}


{% macro sparkevolve__create_csv_table(model, agate_table) %}
  {%- set column_types = model['config'].get('column_types', {}) -%}
  {% set sql %}
    create table {{ this }} (
      {%- for name in agate_table.column_names %}
      {{ adapter.quote(name) }} {{ column_types.get(name, adapter.convert_type(agate_table, loop.index0)) }}
      {{- ',' if not loop.last }}
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
