{# `dbt run --vars 'sparkevolve_plan_only: true'`: say what would happen to each incremental model, change nothing. No rows
   are computed, so a plan assumes that no NULL arrives for a NOT NULL column. Hooks do not run. #}
{% macro plan_only() %}
  {% set full_refresh = sparkevolve.is_full_refresh() %}
  {% set settings = sparkevolve.incremental_settings(full_refresh) %}
  {% set target_relation = this.incorporate(type='table') %}
  {% do sparkevolve.warn_of_settings() %}
  {% set existing_relation = load_relation(this) %}
  {% if sparkevolve.is_new(existing_relation, settings, full_refresh) %}
    {% set plan = sparkevolve.plan_of_new_table(target_relation, existing_relation, settings) %}
  {% else %}
    {% set plan = sparkevolve.plan_of_load(target_relation, settings) %}
  {% endif %}
  {% do log(tojson(plan) if flags.LOG_FORMAT == 'json' else sparkevolve.plan_text(plan), info=True) %}
  {% if plan.refusals %}
    {% set mark = '\n  * ' if plan.refusals | length > 1 else ' ' %}
    {% do exceptions.raise_compiler_error('The run would be refused:' ~ mark ~ plan.refusals | join(mark)) %}
  {% endif %}
  {% do sparkevolve.nothing_run('planned, nothing was changed') %}
  {% do return({'relations': [target_relation] if existing_relation is not none else []}) %}
{% endmacro %}


{% macro plan_of_new_table(target, existing_relation, settings) %}
  {% set query = sparkevolve.query_of_new_table(target, settings) %}
  {% set names = query.fields | map(attribute='name') | list %}
  {% set loses = [] %}
  {% if existing_relation is not none and not existing_relation.is_view %}
    {% set is_iceberg = sparkevolve.is_iceberg_table(existing_relation) %}
    {% do query.refusals.extend(sparkevolve.frozen_replacement(existing_relation, query, not is_iceberg)) %}
    {% if is_iceberg %}
      {% do query.refusals.extend(
        sparkevolve.downgrade_refusals(sparkevolve.table_properties(existing_relation), settings)
      ) %}
    {% endif %}
    {% set old = sparkevolve.column_names(existing_relation) %}
    {% set loses = sparkevolve.sparkevolve__detect_schema_change(names, old).removed %}
  {% endif %}
  {% do return({
    'relation': target | string, 'creates': true, 'columns': names, 'loses': loses,
    'warnings': sparkevolve.note_texts(query), 'refusals': query.refusals
  }) %}
{% endmacro %}


{% macro plan_of_load(target, settings) %}
  {% set there = sparkevolve.read_table(target) %}
  {% set table = dict(there, fields=sparkevolve.as_before(there.fields)) %}
  {% set ends = sparkevolve.ends_of_renames(there) | map(attribute='text') | list %}
  {% set query = sparkevolve.model_query(target, settings, table.fields, table.properties.get('format-version')) %}
  {% set plan = sparkevolve.refused_plan(query.refusals) %}
  {% if not query.refusals %}
    {% set names = query.fields | map(attribute='name') | list %}
    {# Of a bare NULL it is known that it is one. #}
    {% set nulls = [] %}
    {% for field in query.returned if field.type.text == 'void' %}
      {% do nulls.append(field.name | lower) %}
    {% endfor %}
    {% set plan = sparkevolve.plan_batch(table, query, settings, names | map('lower') | reject('in', nulls) | list) %}
    {% set detected = sparkevolve.sparkevolve__detect_schema_change(
      names, table.fields | map(attribute='name') | list
    ) %}
    {% do plan.refusals.extend(sparkevolve.schema_change_refusals(target, detected, settings)) %}
    {% if ends and sparkevolve.freezes_schema() %}
      {% do plan.refusals.append(sparkevolve.refuse_frozen_schema(settings.node, ends)) %}
    {% endif %}
  {% endif %}
  {% set warnings = sparkevolve.begun_warnings(there.fields) + sparkevolve.differences(table, settings) %}
  {% set data = sparkevolve.plan_data(target, plan, settings, sparkevolve.note_texts(query) + plan.warnings + warnings) %}
  {% do return(dict(data, changes=ends + data.changes)) %}
{% endmacro %}


{# A plan as data, in the names of the adapter. #}
{% macro plan_data(target, plan, settings, warnings) %}
  {% set projections, removed_get = [], sparkevolve.removed_values(plan, settings) %}
  {% for column in plan.columns %}
    {% do projections.append({
      'column': column.name, 'expression': sparkevolve.render_column(column, 'DBT_INTERNAL_SOURCE')
    }) %}
  {% endfor %}
  {% do return({
    'relation': target | string,
    'changes': plan.changes | map(attribute='text') | list,
    'projections': projections,
    'removed': removed_get | list,
    'removed_get': removed_get,
    'ignored': plan.ignored | map(attribute='text') | list,
    'warnings': warnings,
    'refusals': plan.refusals
  }) %}
{% endmacro %}


{% macro note_texts(query) %}
  {% set found = [] %}
  {% for note in query.notes %}
    {% do found.append(sparkevolve.note_text(note)) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# A plan as a person reads it, in the words of the adapter. #}
{% macro plan_text(plan) %}
  {% set rows, last = [], [] %}
  {% if plan.creates is defined %}
    {% set title = plan.relation ~ ': would be created from the model' %}
    {% for name in plan.columns %}
      {% do rows.append(['column', sparkevolve.quote(name)]) %}
    {% endfor %}
    {% for name in plan.loses %}
      {% do rows.append(['loses', sparkevolve.quote(name)]) %}
    {% endfor %}
  {% else %}
    {% set title = plan.relation %}
    {% set kept = 'rows that are replaced keep its value, new ones get NULL' %}
    {% for text in plan.changes or ([] if plan.refusals else ['none']) %}
      {% do rows.append(['change', text]) %}
    {% endfor %}
    {% for path in plan.removed %}
      {% do rows.append(['keep', path ~ ': ' ~ kept] if plan.removed_get[path] == kept else ['pad', path]) %}
    {% endfor %}
    {% for text in plan.ignored %}
      {% do rows.append(['leave out', text]) %}
    {% endfor %}
    {% set kind = 'new row' if kept in plan.removed_get.values() | list else 'column' %}
    {# A column that is the model's own as it is, or of which another line says what it gets, goes without saying. #}
    {% for projection in plan.projections %}
      {% set column = sparkevolve.quote(projection.column) %}
      {% if column not in plan.removed and projection.expression != 'DBT_INTERNAL_SOURCE.' ~ column %}
        {% do last.append([kind, column ~ ' = ' ~ projection.expression]) %}
      {% endif %}
    {% endfor %}
  {% endif %}
  {% for text in plan.warnings %}
    {% do rows.append(['warning', text]) %}
  {% endfor %}
  {% if plan.refusals %}
    {% do rows.append(['refused', 'see the error below']) %}
  {% endif %}
  {% set lines = [title] %}
  {% for kind, text in rows + last %}
    {# A line break in a name would make a line that looks like dbt's own. #}
    {% do lines.append('  %-9s  %s' | format(kind, text | replace('\n', '\\n'))) %}
  {% endfor %}
  {% do return(lines | join('\n')) %}
{% endmacro %}
