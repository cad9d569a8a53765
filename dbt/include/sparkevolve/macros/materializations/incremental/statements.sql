{# The model's query, checked against its contract if there is one, in names and types that Iceberg can store.
   Returns `sql` and `columns`. #}
{% macro sparkevolve__model_query(target_relation, settings, table_schema=none) %}
  {% set sql = sparkevolve__compiled_query() %}
  {% if config.get('contract').enforced %}
    {% do get_assert_columns_equivalent(sql) %}
    {% set sql = get_select_subquery(sql) %}
  {% endif %}
  {% set query = adapter.queries().as_stored(target_relation, sql, settings, table_schema) %}
  {% do sparkevolve__warn(query.warnings, target_relation) %}
  {% do return(query) %}
{% endmacro %}


{% macro sparkevolve__compiled_query() %}
  {% do return(adapter.clauses().one_statement(compiled_code)) %}
{% endmacro %}


{# Evaluate the model once, into a table next to the target, and return it. A view would be evaluated again by
   each statement that reads it, after the DELETE has changed what it selects from. #}
{% macro sparkevolve__stage_query(target_relation, query, settings, with_rows=true) %}
  {% set staged = sparkevolve__stage(
    target_relation,
    query.sql if with_rows else 'select * from (\n' ~ query.sql ~ '\n) as model_rows where false',
    adapter.batches().properties(settings, query.columns)
  ) %}
  {% if with_rows %}
    {% do adapter.queries().check_described_still(target_relation, query) %}
  {% endif %}
  {% do return(staged) %}
{% endmacro %}


{# Evaluate a query into a table next to the target, which is removed when the node has ended, and return it. #}
{% macro sparkevolve__stage(target_relation, sql, properties=none) %}
  {% set staged = adapter.batches().new_name(target_relation) %}
  {% set clauses = sparkevolve__staging_clauses(staged, properties or adapter.batches().properties()) %}
  {% set replaces = adapter.load_runner().begin_creation(staged, sql, clauses, is_new=true) %}
  {% call statement('stage') %}
    create {{ 'or replace ' if replaces }}table {{ staged }} {{ clauses }}
    as
    {{ sql }}
  {% endcall %}
  {% do return(staged) %}
{% endmacro %}


{# Spark keeps a table's metadata, and would not see what PyIceberg has committed. #}
{% macro sparkevolve__refresh(relation) %}
  {% call statement('refresh') %}
    refresh table {{ relation }}
  {% endcall %}
{% endmacro %}


{% macro sparkevolve__create_table(relation, sql, replace=false) %}
  {% set clauses = sparkevolve__creation_clauses() %}
  {% set replaces = sparkevolve__begin_creation(relation, sql, clauses) %}
  {% call statement('main') %}
    create {{ 'or replace ' if replace or replaces }}table {{ relation }}
    {{ clauses }}
    as
    {{ sql }}
  {% endcall %}
{% endmacro %}


{# The first run, or a full refresh that takes the model's columns only. #}
{% macro sparkevolve__create_from_model(target_relation, existing_relation, settings) %}
  {% if existing_relation is not none and not existing_relation.is_iceberg %}
    {% do return(sparkevolve__replace_other(target_relation, existing_relation, settings)) %}
  {% endif %}
  {% set query = sparkevolve__model_query(target_relation, settings) %}
  {% do sparkevolve__check_frozen(existing_relation, query.sql) %}
  {% if existing_relation is not none %}
    {% set old_names = adapter.get_columns_in_relation(existing_relation) | map(attribute='name') | list %}
    {% set removed = sparkevolve__detect_schema_change(query.columns, old_names).removed %}
    {% if removed %}
      {% do sparkevolve__warn([
        'The full refresh of ' ~ target_relation ~ ' takes away the columns that the model no longer returns: '
        ~ removed | join(', ') ~ ', since full_refresh_schema is `replace`.'
      ]) %}
    {% endif %}
  {% endif %}
  {% do adapter.preview().refuse_warned_defaults(target_relation, settings) %}
  {% do sparkevolve__check_described(target_relation, query.sql, query.columns) %}
  {% set sql, is_staged = query.sql, false %}
  {# What replaces a table looks at nothing that others have committed since it began, and may go on without its run: it
     reads from a batch, which the next run can take away, and takes no longer than to copy that. #}
  {% if settings.audits or settings.sets_aside or existing_relation is not none %}
    {% set staged = sparkevolve__stage_good_rows(target_relation, query, settings) %}
    {% set sql, is_staged = 'select * from ' ~ staged, true %}
    {% if existing_relation is not none %}
      {% do adapter.batches().begin_replacement(target_relation, staged) %}
    {% endif %}
  {% endif %}
  {% do sparkevolve__create_table(target_relation, sql, replace=existing_relation is not none) %}
  {% if not is_staged %}
    {% do adapter.queries().check_described_still(target_relation, query, is_made=true) %}
  {% endif %}
{% endmacro %}


{# Stage the rows of a table that is to be made, and return those of them that can be in it; the others are set aside. #}
{% macro sparkevolve__stage_good_rows(target_relation, query, settings) %}
  {% set runner = adapter.load_runner() %}
  {% set staged = sparkevolve__stage_query(target_relation, query, settings) %}
  {% set good = runner.route(
    target_relation, none, staged, settings, model.name, sparkevolve__dead_letter_location(settings)
  ) %}
  {% do runner.audit_staged(target_relation, good, settings) %}
  {% do runner.publish_letters(settings) %}
  {% do return(good) %}
{% endmacro %}


{# A view, or in a full refresh a table of another format, becomes an Iceberg table. The model may read it, and
   may fail, so its rows are staged before the old relation goes. #}
{% macro sparkevolve__replace_other(target_relation, existing_relation, settings) %}
  {% do sparkevolve__refuse_hidden(target_relation, sparkevolve__creation_clauses()) %}
  {% set query = sparkevolve__model_query(target_relation, settings) %}
  {% do sparkevolve__check_frozen(existing_relation, query.sql) %}
  {% do adapter.preview().refuse_warned_defaults(target_relation, settings) %}
  {% do sparkevolve__check_described(target_relation, query.sql, query.columns) %}
  {% set staged = sparkevolve__stage_good_rows(target_relation, query, settings) %}
  {% do adapter.drop_relation(existing_relation) %}
  {% do sparkevolve__create_table(target_relation, 'select * from ' ~ staged) %}
{% endmacro %}


{# A table that is made by a query has no defaults yet. #}
{% macro sparkevolve__store_defaults(target_relation, settings) %}
  {% do sparkevolve__warn(adapter.load_runner().store_defaults(target_relation, settings), target_relation) %}
{% endmacro %}
