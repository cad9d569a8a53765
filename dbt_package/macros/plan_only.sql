{# `dbt run --vars 'sparkevolve_plan_only: true'`: say what would happen to each incremental model, change nothing. No rows
   are computed, so a plan assumes that no NULL arrives for a NOT NULL column. Hooks do not run. What a run looks at before
   it reads a row is looked at here, too, but for whether a profile takes the mode of overwriting back: that is seen by
   setting it. #}
{% macro plan_only() %}
  {% set full_refresh = sparkevolve.is_full_refresh() %}
  {% set settings = sparkevolve.incremental_settings(full_refresh) %}
  {% set target_relation = this.incorporate(type='table') %}
  {% do sparkevolve.freezes_schema() %}
  {% do sparkevolve.warn_of_settings() %}
  {% do sparkevolve.check_grants(target_relation) %}
  {% do sparkevolve.check_sql_settings_of_model() %}
  {% set existing_relation = load_relation(this) %}
  {% if sparkevolve.is_new(existing_relation, settings, full_refresh) %}
    {% set plan = sparkevolve.plan_of_new_table(target_relation, existing_relation, settings) %}
  {% else %}
    {% do sparkevolve.check_is_iceberg(existing_relation, target_relation) %}
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
  {# Of a query that cannot be stored there is nothing else to tell. #}
  {% set is_stored, names = not query.refusals, query.fields | map(attribute='name') | list %}
  {% set loses, kept = [], {} %}
  {% if is_stored and not settings.is_sampled_empty %}
    {% do query.refusals.extend(
      sparkevolve.unreadable_audits('SELECT * FROM (\n' ~ query.sql ~ '\n) AS model_rows', settings.audits)
    ) %}
  {% endif %}
  {% if existing_relation is not none and not existing_relation.is_view %}
    {% set is_iceberg = sparkevolve.is_iceberg_table(existing_relation) %}
    {% do query.refusals.extend(sparkevolve.frozen_replacement(existing_relation, query, not is_iceberg)) %}
    {% if is_iceberg %}
      {% do kept.update(sparkevolve.table_properties(existing_relation)) %}
      {% do query.refusals.extend(sparkevolve.downgrade_refusals(kept, settings)) %}
    {% endif %}
    {% set old = sparkevolve.column_names(existing_relation) %}
    {% set loses = sparkevolve.sparkevolve__detect_schema_change(names, old).removed %}
  {% endif %}
  {% do sparkevolve.check_wap(target, dict(kept, **settings.tblproperties)) %}
  {% do return({
    'relation': target | string, 'creates': true, 'columns': names if is_stored else [], 'loses': loses,
    'warnings': sparkevolve.note_texts(query) if is_stored else [], 'refusals': query.refusals
  }) %}
{% endmacro %}


{% macro plan_of_load(target, settings) %}
  {% set there = sparkevolve.read_table(target) %}
  {% set on_branch = settings.publish == 'branch' or settings.removed_columns == 'keep' %}
  {% do sparkevolve.check_session(there, settings, on_branch) %}
  {% do sparkevolve.check_table(there, settings, on_branch) %}
  {% do sparkevolve.check_partitionings(there, settings, on_branch) %}
  {% set table = dict(there, fields=sparkevolve.as_before(there.fields)) %}
  {% set taken_back = sparkevolve.ends_of_renames(there) %}
  {% set ends = taken_back | map(attribute='text') | list %}
  {% do sparkevolve.check_plannable(ends) %}
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
    {% if not plan.refusals %}
      {% do plan.refusals.extend(sparkevolve.unreadable_texts(
        target, query, dict(plan, changes=taken_back + plan.changes), settings
      )) %}
    {% endif %}
  {% endif %}
  {% set warnings = sparkevolve.begun_warnings(there.fields) + sparkevolve.differences(table, settings) %}
  {% set notes = [] if query.refusals else sparkevolve.note_texts(query) %}
  {% set data = sparkevolve.plan_data(target, plan, settings, notes + plan.warnings + warnings) %}
  {% do return(dict(data, changes=ends + data.changes)) %}
{% endmacro %}


{# A model may read a column of its table that has another name since a run has ended half-way. #}
{% macro check_plannable(ends) %}
  {% set error = sparkevolve.explained_error(
    'the query', 'select * from (\n' ~ sparkevolve.compiled_query() ~ '\n) as model_rows'
  ) if ends else '' %}
  {% if error %}
    {% do exceptions.raise_compiler_error(
      error ~ '\nA run has ended while it changed the case of a name, and the next one takes that back first ('
      ~ ends | join('; ') ~ '). A plan changes nothing: if what is missing is the old name, the model cannot be planned '
      ~ 'before it has run.'
    ) %}
  {% endif %}
{% endmacro %}


{# Why the run would be refused, for each condition that Spark cannot read, over the query in place of a staged batch. #}
{% macro unreadable_texts(target, query, plan, settings) %}
  {% set load = {
    'target': target | string, 'staged': '(\n' ~ query.sql ~ '\n)', 'plan': plan, 'settings': settings,
    'batch': {'rows': 0 if settings.is_sampled_empty else 1}
  } %}
  {% set rows = 'SELECT\n  ' ~ sparkevolve.select_items(plan.columns) ~ '\nFROM ' ~ load.staged ~ ' AS DBT_INTERNAL_SOURCE' %}
  {% set audits = [] if settings.is_sampled_empty else sparkevolve.texts_to_ask(
    settings.audits, plan, this.identifier
  ) %}
  {% do return(
    sparkevolve.unreadable_predicates(load, is_plan=true) + sparkevolve.unreadable_audits(rows, audits)
  ) %}
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
