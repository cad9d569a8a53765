{# The model's SQL, checked against its contract if there is one. #}
{% macro sparkevolve__model_sql() %}
  {% if config.get('contract').enforced %}
    {% do get_assert_columns_equivalent(compiled_code) %}
    {% do return(get_select_subquery(compiled_code)) %}
  {% endif %}
  {% do return(compiled_code) %}
{% endmacro %}


{# Evaluate the model once, into a table next to the target, and return it. A view would be evaluated again by
   each statement that reads it, after the DELETE has changed what it selects from. #}
{% macro sparkevolve__stage_batch(target_relation) %}
  {% set staged = adapter.staging_relation(target_relation) %}
  {% call statement('stage_batch') %}
    create table {{ staged }} using iceberg
    {{ sparkevolve__tblproperties(adapter.staging_properties()) }}
    as
    {{ sparkevolve__model_sql() }}
  {% endcall %}
  {% do return(staged) %}
{% endmacro %}


{# Spark keeps a table's metadata, and would not see what PyIceberg has committed. #}
{% macro sparkevolve__refresh(relation) %}
  {% call statement('refresh') %}
    refresh table {{ relation }}
  {% endcall %}
{% endmacro %}


{# Load into the table itself, one commit a statement. #}
{% macro sparkevolve__publish_directly(load) %}
  {% for sql in load.statements %}
    {% call statement('main' if loop.last else 'load_' ~ loop.index) %}
      {{ sql }}
    {% endcall %}
  {% else %}
    {% call noop_statement('main', 'OK, an empty batch', 'OK', 0) %}
      -- the batch was empty
    {% endcall %}
  {% endfor %}
{% endmacro %}


{% macro sparkevolve__create_table(relation, sql, replace=false) %}
  {% call statement('main') %}
    create {{ 'or replace ' if replace }}table {{ relation }}
    {{ file_format_clause() }}
    {{ options_clause() }}
    {{ tblproperties_clause() }}
    {{ partition_cols(label="partitioned by") }}
    {{ clustered_cols(label="clustered by") }}
    {{ location_clause() }}
    {{ comment_clause() }}
    as
    {{ sql }}
  {% endcall %}
{% endmacro %}


{# The first run, or a full refresh. #}
{% macro sparkevolve__create_from_model(target_relation, existing_relation, settings) %}
  {% set sql = sparkevolve__model_sql() %}
  {% set names = get_columns_in_query(sql) | list %}
  {% do adapter.check_model_columns(target_relation, names, settings.unique_key) %}
  {% set replace = existing_relation is not none and existing_relation.is_iceberg %}
  {% if replace %}
    {% set old_names = adapter.get_columns_in_relation(existing_relation) | map(attribute='name') | list %}
    {% set removed = sparkevolve__diff_columns(names, old_names).removed %}
    {% if removed %}
      {% do exceptions.warn(
        'The full refresh of ' ~ target_relation ~ ' takes away the columns that the model no longer returns: '
        ~ removed | join(', ') ~ '. Set `full_refresh: false` on the model to rule that out.'
      ) %}
    {% endif %}
  {% elif existing_relation is not none %}
    {% do adapter.drop_relation(existing_relation) %}
  {% endif %}
  {% do sparkevolve__create_table(target_relation, sql, replace) %}
{% endmacro %}


{# A view becomes a table. The model may read the view, so its rows are staged before the view goes. #}
{% macro sparkevolve__replace_view(target_relation, existing_relation, settings) %}
  {% set staged = sparkevolve__stage_batch(target_relation) %}
  {% set names = adapter.get_columns_in_relation(staged) | map(attribute='name') | list %}
  {% do adapter.check_model_columns(target_relation, names, settings.unique_key) %}
  {% do adapter.drop_relation(existing_relation) %}
  {% do sparkevolve__create_table(target_relation, 'select * from ' ~ staged) %}
{% endmacro %}
