{# What the wrapper in the project calls; see the README of this package. #}
{% macro incremental() %}
  {% if sparkevolve.variable_is_on('sparkevolve_plan_only') %}
    {% do return(sparkevolve.plan_only()) %}
  {% endif %}
  {% set full_refresh = sparkevolve.is_full_refresh() %}
  {% set settings = sparkevolve.incremental_settings(full_refresh) %}
  {% set target_relation = this.incorporate(type='table') %}
  {% do sparkevolve.freezes_schema() %}
  {% do sparkevolve.warn_of_settings() %}
  {% do sparkevolve.check_grants(target_relation) %}
  {% set compiled_for_a_table = is_incremental() %}
  {% set changed = sparkevolve.end_renames_before_hooks(target_relation) if pre_hooks and settings.column_renames else [] %}
  {% do run_hooks(sparkevolve.all_hooks(pre_hooks, outside_first=true)) %}
  {% do sparkevolve.check_sql_settings_of_model() %}
  {% set existing_relation = load_relation(this) %}
  {% if compiled_for_a_table and (existing_relation is none or existing_relation.type != 'table') %}
    {% do sparkevolve.check_compiled_without_table(target_relation, pre_hooks + post_hooks) %}
  {% endif %}
  {% if sparkevolve.is_new(existing_relation, settings, full_refresh) %}
    {% do sparkevolve.create_from_model(target_relation, existing_relation, settings) %}
  {% else %}
    {% do sparkevolve.check_is_iceberg(existing_relation, target_relation) %}
    {% do sparkevolve.load_existing(target_relation, settings, changed) %}
  {% endif %}
  {% do apply_grants(
    target_relation, config.get('grants'), should_revoke=should_revoke(existing_relation, full_refresh)
  ) %}
  {% do sparkevolve.store_descriptions(target_relation) %}
  {% do sparkevolve.tell_of_not_null(target_relation) %}
  {% do run_hooks(sparkevolve.all_hooks(post_hooks, outside_first=false)) %}
  {% do return({'relations': [target_relation]}) %}
{% endmacro %}


{# Refuse a model that dbt compiled for a table which has gone since, if it may ask for that. Which macros another macro
   calls is not known here: of those that are not dbt's own, each might. dbt counts those that hooks call among the model's,
   and says nothing of methods of the adapter. #}
{% macro check_compiled_without_table(target, hooks) %}
  {% set words, called = sparkevolve.own_words(model.raw_code, hooks), [] %}
  {# A name may be put together; whether dbt v2 has the text of a model was not tried. #}
  {% set any = 'context' in words or 'dispatch' in words or not dbt_version.startswith('1.') %}
  {% for macro in model.depends_on.macros %}
    {% set name = macro.split('.') | last %}
    {% if any or name in words %}
      {% do called.append([macro, name]) %}
    {% endif %}
  {% endfor %}
  {% set asking = ['macro.dbt.is_incremental', 'macro.dbt.load_relation', 'macro.dbt.load_cached_relation'] %}
  {% set asks, others = ['get_relation'] if 'get_relation' in words else [], [] %}
  {% for macro, name in called %}
    {% if macro in asking %}
      {% do asks.append(name) %}
    {% elif not modules.re.match('macro\\.dbt(_spark)?\\.', macro) %}
      {% do others.append(name) %}
    {% endif %}
  {% endfor %}
  {% if asks or others %}
    {% do exceptions.raise_compiler_error(
      target ~ ' was there when dbt compiled the model, and is not a table any more: a hook of this run, or another writer, '
      ~ 'has dropped or replaced it since. The model '
      ~ ('asks `is_incremental()`, so what it returns now are' if 'is_incremental' in asks else
         'may ask for its table by `' ~ asks[0] ~ '`, so what it returns now may be' if asks else
         'may ask `is_incremental()` in a macro that it calls (' ~ sparkevolve.listed(others) ~ '), so what it returns now may be')
      ~ ' the rows for a table that has the others already, and a table made from them would lack those. No table was made. '
      ~ 'Run the model again: dbt then compiles it for a first run. If a pre-hook drops the table in every run, make the '
      ~ 'model `materialized: table`.'
    ) %}
  {% endif %}
{% endmacro %}


{# The words of a model as it is written, without those of the hooks in its `config`: the adapter's `own_words` again. A hook
   that is not found as it is, since it is put together or has escapes in it, counts as the model. #}
{% macro own_words(code, hooks) %}
  {% set own = namespace(code=code) %}
  {% for hook in hooks if hook.sql %}
    {% set own.code = own.code | replace(hook.sql, ' ') %}
  {% endfor %}
  {% do return(modules.re.findall('\\w+', own.code)) %}
{% endmacro %}


{# Hooks in the order in which the adapter runs them. Those that say `transaction: false` are among them: dbt-spark's own
   materialization passes over them, and dbt would send a COMMIT first, which Spark does not know. #}
{% macro all_hooks(hooks, outside_first) %}
  {% set inside, outside = [], [] %}
  {% for hook in hooks %}
    {% do (inside if hook.get('transaction', true) else outside).append(dict(hook, transaction=true)) %}
  {% endfor %}
  {% do return(outside + inside if outside_first else inside + outside) %}
{% endmacro %}


{# Whether this node replaces all rows. Of a microbatch model it is the first batch that does, and `dbt retry` has dbt run
   the first of those that are left as if it was that one, though the others are loaded. Since dbt tries a model again as a
   whole when its very first batch has failed, a batch that begins elsewhere than the run has to begin goes on. #}
{% macro is_full_refresh() %}
  {% if not should_full_refresh() %}
    {% do return(false) %}
  {% endif %}
  {% set start = config.get('__dbt_internal_microbatch_event_time_start') %}
  {% set first = sparkevolve.first_moment() %}
  {% if start is none or first is none or not dbt_version.startswith('1.') %}
    {% do return(true) %}
  {% endif %}
  {% set formats = {'hour': '%Y-%m-%d %H', 'day': '%Y-%m-%d', 'month': '%Y-%m', 'year': '%Y'} %}
  {% set format = formats[config.get('batch_size') | string | lower] %}
  {% do return(start.strftime(format) == first.strftime(format)) %}
{% endmacro %}


{# The moment that the first batch of a full refresh has to hold: dbt looks at the same places, in this order. #}
{% macro first_moment() %}
  {% set given = invocation_args_dict %}
  {% set moment = given.sample.start if given.get('sample') else given.get('event_time_start') or config.get('begin') %}
  {% do return(
    modules.datetime.datetime.fromisoformat(moment | replace('Z', '+00:00')) if moment is string else moment
  ) %}
{% endmacro %}


{# See that Spark has a GRANT while nothing is written yet: its parser knows the statement only with an authoriser. #}
{% macro check_grants(target) %}
  {% if config.get('grants') %}
    {% do sparkevolve.run_statement(
      'explain /* Nothing was written. If this fails, Spark has no GRANT: take `grants` out of ' ~ model.unique_id ~ ' */ '
      ~ 'grant select on table ' ~ target ~ ' to `nobody`', 'check'
    ) %}
  {% endif %}
{% endmacro %}


{# Spark enforces no constraint on an Iceberg table but NOT NULL, and a column that may go from the model must be free to be
   padded: what a contract says of it stays with dbt. #}
{% macro tell_of_not_null(target) %}
  {% set found = [] %}
  {% if config.get('contract').enforced %}
    {% for column in model.columns.values() if column.constraints | selectattr('type', 'equalto', 'not_null') | list %}
      {% do found.append(column.name) %}
    {% endfor %}
    {% for constraint in model.constraints if constraint.type == 'not_null' %}
      {% do found.extend(constraint.columns) %}
    {% endfor %}
  {% endif %}
  {% if found %}
    {% set wanted, named = found | map('lower') | list, [] %}
    {% for name in sparkevolve.column_names(target) if name | lower in wanted %}
      {% do named.append(name) %}
    {% endfor %}
    {% do log(
      target ~ ": the contract's not_null of " ~ sparkevolve.listed(named) ~ ' is not applied: in the table '
      ~ "such a column stays optional, so that it can be padded once the model no longer returns it. dbt's test "
      ~ '`not_null` checks it, and so do `audits` before rows are visible.', info=True
    ) %}
  {% endif %}
{% endmacro %}


{# Whether a table is created or recreated. #}
{% macro is_new(existing_relation, settings, full_refresh) %}
  {% if existing_relation is none or existing_relation.is_view %}
    {% do return(true) %}
  {% endif %}
  {% do return(full_refresh and (
    settings.full_refresh_schema == 'replace' or not sparkevolve.is_iceberg_table(existing_relation)
  )) %}
{% endmacro %}


{# What dbt has in its cache of a table that this command has made says nothing of its format: Spark is asked, before a
   table is dropped as one of another format. #}
{% macro is_iceberg_table(relation) %}
  {% if relation.is_iceberg %}
    {% do return(true) %}
  {% endif %}
  {# What is told of the table comes after its columns, of which one may be called so. #}
  {% set providers = [''] %}
  {% for row in sparkevolve.rows('describe extended ' ~ relation) if row[0] == 'Provider' %}
    {% do providers.append(row[1]) %}
  {% endfor %}
  {% do return(providers | last | lower == 'iceberg') %}
{% endmacro %}


{% macro check_is_iceberg(existing_relation, target) %}
  {% if not sparkevolve.is_iceberg_table(existing_relation) %}
    {% do exceptions.raise_compiler_error(
      target ~ ' is not an Iceberg table: an incremental model of the package sparkevolve needs one. Move or drop the table '
      ~ 'that is there, or run the model with --full-refresh, which replaces it. Nothing was written.'
    ) %}
  {% endif %}
{% endmacro %}


{# The first run, or a full refresh that takes the model's columns only. #}
{% macro create_from_model(target, existing_relation, settings) %}
  {% set query = sparkevolve.query_of_new_table(target, settings) %}
  {% do sparkevolve.refuse(target, query.refusals) %}
  {% do sparkevolve.warn_of_notes(target, query) %}
  {% set kept = sparkevolve.table_properties(existing_relation) if existing_relation is not none
    and not existing_relation.is_view and sparkevolve.is_iceberg_table(existing_relation) else {} %}
  {% do sparkevolve.check_wap(target, dict(kept, **settings.tblproperties)) %}
  {% do sparkevolve.refuse(target, sparkevolve.downgrade_refusals(kept, settings)) %}
  {% set sql, staged = query.sql, none %}
  {% set is_other = existing_relation is not none
    and (existing_relation.is_view or not sparkevolve.is_iceberg_table(existing_relation)) %}
  {% if settings.audits or existing_relation is not none %}
    {# The model may read what is there, and may fail, so its rows are staged before the old relation goes. What replaces a
       table looks at nothing that others have committed since it began, and may go on without its job: it reads from a
       batch, which the next run can take away, and takes no longer than to copy that. #}
    {% set staged = sparkevolve.staging_relation(target, model.unique_id ~ sparkevolve.window_text(settings), 0) %}
    {% do sparkevolve.stage(staged, query) %}
    {% do sparkevolve.check_described_still(target, query, staged) %}
    {% do sparkevolve.describe_staged(target, staged, query, settings) %}
    {% do sparkevolve.refuse_staged(target, staged, query.refusals) %}
    {% do sparkevolve.check_audits_staged(target, staged, query, settings) %}
    {% set sql = 'select * from ' ~ staged %}
  {% endif %}
  {% if existing_relation is not none %}
    {% do sparkevolve.warn_of_replacement(target, existing_relation, query, is_other) %}
    {% if is_other %}
      {# What Spark or the catalog does not take is to be seen while the old relation is there. #}
      {% set trial = sparkevolve.staging_relation(target, model.unique_id ~ sparkevolve.window_text(settings), 'trial') %}
      {% do sparkevolve.drop_staged(trial) %}
      {% do sparkevolve.run_statement(
        sparkevolve.create_statement(trial, sql ~ ' where false', settings, query.fields, is_trial=true)
      ) %}
      {% do sparkevolve.drop_staged(trial) %}
      {% do adapter.drop_relation(existing_relation) %}
    {% endif %}
  {% endif %}
  {% set replace = existing_relation is not none and not is_other %}
  {% set replaced = sparkevolve.begin_replacement(target, staged) if replace else {} %}
  {% do sparkevolve.run_statement(sparkevolve.create_statement(
    target, sql, settings, query.fields, replace, version=sparkevolve.version_of(replaced)
  ), 'main') %}
  {% if not replace %}
    {% do sparkevolve.check_made_by_this_run(target, existing_relation) %}
  {% endif %}
  {% if staged is none %}
    {% do sparkevolve.check_described_still(target, query) %}
  {% endif %}
  {% if staged is not none %}
    {% do sparkevolve.drop_staged(staged) %}
  {% endif %}
  {% if replace %}
    {% do sparkevolve.forget_replacement(target, sparkevolve.token_of(staged)) %}
  {% endif %}
{% endmacro %}


{# The property of a table with the token of the batch by which it is about to be replaced; the adapter's, too. Spark shows
   no value that looks like an address or a secret: a model's name may, and the token does not. #}
{% macro replaced_by() %}
  {% do return('sparkevolve.replaced-by') %}
{% endmacro %}


{# What the name of a staged batch ends in. #}
{% macro token_of(staged) %}
  {% do return(staged.identifier.split('__dbt_tmp_')[-1]) %}
{% endmacro %}


{# Note in a table by which batch a statement is about to replace it: a server may run that after the job was killed.
   Returns the properties that the table had. #}
{% macro begin_replacement(target, staged) %}
  {% do sparkevolve.run_statement('refresh table ' ~ target) %}
  {% set properties = sparkevolve.table_properties(target) %}
  {% if sparkevolve.end_replacement(target, properties) %}
    {% set properties = sparkevolve.table_properties(target) %}
  {% endif %}
  {% do sparkevolve.unset_properties(target, sparkevolve.metrics_of_no_column(target, properties)) %}
  {% do sparkevolve.run_statement(
    'ALTER TABLE ' ~ target ~ ' SET TBLPROPERTIES (' ~ sparkevolve.constant_literal(sparkevolve.replaced_by(), true) ~ ' = '
    ~ sparkevolve.constant_literal(sparkevolve.token_of(staged), true) ~ ')'
  ) %}
  {% do return(properties) %}
{% endmacro %}


{# Take its batch away from a full refresh that may still be replacing a table: its job was killed, or has begun before this
   one, and rows that this one loads would be replaced. What has no rows to read any more fails. Returns whether there is
   one. #}
{% macro end_replacement(target, properties) %}
  {% set token = properties.get(sparkevolve.replaced_by()) %}
  {% if token is not none %}
    {% if modules.re.match('[0-9a-f]{12}$', token) %}
      {% set batch = target.incorporate(path={'identifier': target.identifier[:200] ~ '__dbt_tmp_' ~ token}, type='table') %}
      {% do log(
        'Removing ' ~ batch ~ ', by which a full refresh was to replace ' ~ target
        ~ ': it has failed, was killed, or still runs, and replaces nothing any more', info=True
      ) %}
      {% do sparkevolve.drop_staged(batch) %}
    {% endif %}
    {% do sparkevolve.forget_replacement(target, token) %}
  {% endif %}
  {% do return(token is not none) %}
{% endmacro %}


{# Remove the note of this token. Another full refresh may have left its own meanwhile, which it still needs. #}
{% macro forget_replacement(target, token) %}
  {% do sparkevolve.run_statement('refresh table ' ~ target) %}
  {% set properties = sparkevolve.table_properties(target) %}
  {% if properties.get(sparkevolve.replaced_by()) == token %}
    {% do sparkevolve.unset_properties(
      target, [sparkevolve.replaced_by()] + sparkevolve.metrics_of_no_column(target, properties)
    ) %}
  {% endif %}
{% endmacro %}


{% macro unset_properties(target, names) %}
  {% set literals = [] %}
  {% for name in names %}
    {% do literals.append(sparkevolve.constant_literal(name, true)) %}
    {% if name != sparkevolve.replaced_by() %}
      {% do log(target ~ ': removing the property ' ~ name ~ ', since the table no longer has that column', info=True) %}
    {% endif %}
  {% endfor %}
  {% if literals %}
    {% do sparkevolve.run_statement(
      'ALTER TABLE ' ~ target ~ ' UNSET TBLPROPERTIES IF EXISTS (' ~ literals | join(', ') ~ ')'
    ) %}
  {% endif %}
{% endmacro %}


{# The properties that set metrics for a column which a table no longer has: CREATE OR REPLACE leaves them, and Iceberg then
   changes no property of the table until they are gone. A column that is dropped takes its own with it. #}
{% macro metrics_of_no_column(target, properties) %}
  {% set prefix, set_for = 'write.metadata.metrics.column.', [] %}
  {% for name in properties if name.startswith(prefix) %}
    {% do set_for.append(name) %}
  {% endfor %}
  {% if not set_for %}
    {% do return([]) %}
  {% endif %}
  {% set known = sparkevolve.dotted_names(sparkevolve.query_fields(target, 'select * from ' ~ target)) %}
  {% set found = [] %}
  {% for name in set_for if name[prefix | length:] not in known %}
    {% do found.append(name) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# What Iceberg finds fields by: full names, and short ones, without `element` or `value` where that is a struct. `parent` is
   the kind of what the fields are in. #}
{% macro dotted_names(fields, full='', short='', parent='struct') %}
  {% set found = [] %}
  {% for field in fields %}
    {% set is_left_out = parent != 'struct' and field.type.kind == 'struct' and field.name != 'key' %}
    {% do found.extend([full ~ field.name, short ~ field.name]) %}
    {% do found.extend(sparkevolve.dotted_names(
      field.type.fields, full ~ field.name ~ '.', short if is_left_out else short ~ field.name ~ '.', field.type.kind
    )) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{% macro table_properties(relation) %}
  {% set found = {} %}
  {% for row in sparkevolve.rows('show tblproperties ' ~ relation) %}
    {% do found.update({row[0]: row[1]}) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{% macro check_audits_staged(target, staged, query, settings) %}
  {% if settings.audits %}
    {% set columns = [] %}
    {% for field in query.fields %}
      {% do columns.append({'name': field.name, 'source': field.name, 'projection': {'kind': 'keep'}}) %}
    {% endfor %}
    {% do sparkevolve.check_audits_can_be_asked(target, staged, columns, settings.audits) %}
    {% do sparkevolve.check_audits({
      'target': target | string, 'staged': staged | string, 'settings': settings, 'on_branch': false,
      'plan': {'unique_key': settings.unique_key, 'columns': columns}
    }, 'SELECT * FROM ' ~ staged) %}
  {% endif %}
{% endmacro %}


{# CREATE TABLE, with what of the configuration takes effect only then. dbt-spark sends a statement again after a lost
   connection: a table that was not there is made once all the same, and one that this run has made is no error. A trial is
   dropped again, and found by its mark where a job was killed: it is elsewhere, and Spark can purge it. #}
{% macro create_statement(target, sql, settings, fields, replace=false, is_trial=false, version='2') %}
  {% set properties = dict(sparkevolve.default_properties(settings.tblproperties, version), **settings.tblproperties) %}
  {% do properties.update(sparkevolve.staged_properties() if is_trial else {sparkevolve.made_by(): invocation_id}) %}
  {% do return([
    'create ' ~ ('or replace table ' if replace else 'table if not exists ') ~ target ~ '\nusing iceberg',
    sparkevolve.pairs_clause('options', settings.options),
    sparkevolve.pairs_clause('tblproperties', properties),
    sparkevolve.partition_clause(settings, fields),
    'location ' ~ sparkevolve.constant_literal(sparkevolve.location(settings), true)
      if settings.location_root and not is_trial else '',
    'comment ' ~ sparkevolve.constant_literal(model.description, true)
      if config.persist_relation_docs() and model.description else '',
    'as\n' ~ sql
  ] | select | join('\n')) %}
{% endmacro %}


{# The property of a table that says which dbt command has made it. #}
{% macro made_by() %}
  {% do return('sparkevolve.made-by') %}
{% endmacro %}


{# A table that was there all the same has none of this run's rows: somebody has made it since, or dbt-spark, which takes a
   schema that it cannot list for an empty one, has not seen it. `dropped` is what was there before, if it was no Iceberg table. #}
{% macro check_made_by_this_run(target, dropped) %}
  {% set makers = [] %}
  {% for row in sparkevolve.rows('show tblproperties ' ~ target) if row[0] == sparkevolve.made_by() %}
    {% do makers.append(row[1]) %}
  {% endfor %}
  {% if makers != [invocation_id] %}
    {% set there = 'and there was one when its first rows were to be written' %}
    {% if dropped is none %}
      {% set found = 'dbt saw no ' ~ target ~ ' when this command began, ' ~ there ~ ': a pre-hook or somebody else has made it since, or '
        ~ 'dbt-spark could not list the schema. If it is so in each run, the catalog does not list this table: '
        ~ '`dbt run-operation sparkevolve.check` says what to do.' %}
    {% else %}
      {% set found = 'This run has dropped ' ~ target ~ ', which was '
        ~ ('a view' if dropped.is_view else 'a table of another format, with its rows') ~ ', ' ~ there
        ~ ': somebody has made it since.' %}
    {% endif %}
    {% do exceptions.raise_compiler_error(
      found ~ ' Nothing was written to it. Run the model again: what it returns is then loaded into that table.'
    ) %}
  {% endif %}
{% endmacro %}


{# Names and values as a clause; empty if there are none. #}
{% macro pairs_clause(keyword, values) %}
  {% set pairs = [] %}
  {% for name, value in values.items() %}
    {% do pairs.append(
      sparkevolve.constant_literal(name | string, true) ~ ' = ' ~ sparkevolve.constant_literal(value | string, true)
    ) %}
  {% endfor %}
  {% do return(keyword ~ ' (' ~ pairs | join(', ') ~ ')' if pairs else '') %}
{% endmacro %}


{# Where the table of the model is to be, if the model says so. #}
{% macro location(settings) %}
  {% do return(settings.location_root ~ '/' ~ model.alias if settings.location_root else none) %}
{% endmacro %}


{# The format version of a table with these properties that is to be replaced, 2 at least. Iceberg takes none back that
   somebody has upgraded. #}
{% macro version_of(properties) %}
  {% set version = properties.get('format-version', '2') %}
  {% do return(version if version | int > 2 else '2') %}
{% endmacro %}


{# A model that wants a table of an older format version than the one that it replaces. #}
{% macro downgrade_refusals(properties, settings) %}
  {% set wanted, actual = settings.tblproperties.get('format-version', ''), properties.get('format-version', '') %}
  {% do return(
    [sparkevolve.refuse_downgrade(wanted | trim, actual)] if wanted | trim | int > 0 and actual | int > wanted | trim | int else []
  ) %}
{% endmacro %}


{# What the adapter gives a new table, too. #}
{% macro default_properties(given, version) %}
  {% set found = {'format-version': version} %}
  {% if given.get('format-version', '2') | trim != '1' %}
    {% for name in ['write.delete.mode', 'write.update.mode', 'write.merge.mode'] %}
      {% do found.update({name: 'merge-on-read'}) %}
    {% endfor %}
  {% endif %}
  {% do found.update({
    'write.metadata.delete-after-commit.enabled': 'true', 'write.metadata.previous-versions-max': '100'
  }) %}
  {% do return(found) %}
{% endmacro %}


{# Spark minds the case of a name in a transform: a column is written as the model returns it, if that is known. #}
{% macro partition_clause(settings, fields=[]) %}
  {% set terms, spelled = [], {} %}
  {% do sparkevolve.note_spelling(fields, '', '', spelled) %}
  {% for listed in settings.partition_by %}
    {% for term in sparkevolve.split_terms(listed) %}
      {% set call = modules.re.match('(\\w+)\\s*\\(((?:.|\\n)*)\\)$', term | trim) %}
      {% if not call %}
        {% do terms.append(sparkevolve.source_sql(term, spelled)) %}
      {% else %}
        {% set arguments = [] %}
        {% for argument in sparkevolve.split_terms(call.group(2)) %}
          {% do arguments.append(
            argument | trim if modules.re.match('[0-9]+$', argument | trim) else sparkevolve.source_sql(argument, spelled)
          ) %}
        {% endfor %}
        {% do terms.append(call.group(1) ~ '(' ~ arguments | join(', ') ~ ')') %}
      {% endif %}
    {% endfor %}
  {% endfor %}
  {% set clauses = [] %}
  {% if terms %}
    {% do clauses.append('partitioned by (' ~ terms | join(', ') ~ ')') %}
  {% endif %}
  {% if settings.clustered_by and settings.buckets %}
    {% do clauses.append(
      'clustered by (' ~ sparkevolve.listed(settings.clustered_by) ~ ') into ' ~ settings.buckets | int ~ ' buckets'
    ) %}
  {% endif %}
  {% do return(clauses | join('\n')) %}
{% endmacro %}


{# Put the SQL of each field that is in no list or map into `spelled`, by its path as `parse_partitions` has it; more than one
   where two may have it. #}
{% macro note_spelling(fields, before, text, spelled) %}
  {% for field in fields %}
    {% set path, sql = before ~ field.name | lower | replace('`', ''), text ~ sparkevolve.quote(field.name) %}
    {% do spelled.update({path: spelled.get(path, []) + [sql]}) %}
    {% if field.type.kind == 'struct' %}
      {% do sparkevolve.note_spelling(field.type.fields, path ~ '.', sql ~ '.', spelled) %}
    {% endif %}
  {% endfor %}
{% endmacro %}


{% macro source_sql(text, spelled) %}
  {% set found = spelled.get(text | replace('`', '') | trim | lower, []) %}
  {% do return(found[0] if found | length == 1 else sparkevolve.name_sql(text)) %}
{% endmacro %}


{# The name of a column, or the path of a field, with each part in backticks. What is no path of words and of names in
   backticks is one name, with whatever is in it. #}
{% macro name_sql(text) %}
  {% set stripped = text | trim %}
  {% set levels = sparkevolve.dotted_levels(stripped) or [] %}
  {% set parts = [] %}
  {% for name, is_quoted in levels %}
    {% if is_quoted or modules.re.match('\\w+$', name) %}
      {% do parts.append(sparkevolve.quote(name)) %}
    {% endif %}
  {% endfor %}
  {% do return(
    parts | join('.') if levels and parts | length == levels | length else sparkevolve.quote(stripped)
  ) %}
{% endmacro %}


{# The names of the columns of a table. dbt-spark's list ends before the first that begins with `#`; what is of another format
   Spark may be able to describe, and not to read. #}
{% macro column_names(relation) %}
  {% if not sparkevolve.is_iceberg_table(relation) %}
    {% do return(adapter.get_columns_in_relation(relation) | map(attribute='name') | list) %}
  {% endif %}
  {% set found = [] %}
  {% for row in sparkevolve.rows('describe query select * from ' ~ relation) %}
    {% do found.append(row[0]) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# A full refresh with `replace`, or of a table of another format, takes away what the model no longer returns. #}
{% macro warn_of_replacement(target, existing_relation, query, is_other) %}
  {% if existing_relation.is_view %}
    {% do return('') %}
  {% endif %}
  {% set old = sparkevolve.column_names(existing_relation) %}
  {% set detected = sparkevolve.sparkevolve__detect_schema_change(query.fields | map(attribute='name') | list, old) %}
  {% set frozen = sparkevolve.frozen_replacement(existing_relation, query, is_other) %}
  {% if frozen %}
    {% do exceptions.raise_compiler_error(frozen[0] ~ ' Nothing was written.') %}
  {% endif %}
  {% if detected.removed %}
    {% do exceptions.warn(
      'The full refresh of ' ~ target ~ ' takes away the columns that the model no longer returns: '
      ~ detected.removed | join(', ') ~ ', since ' ~ ('full_refresh_schema is `replace`' if not is_other
                                                      else 'what is there is not an Iceberg table, and is replaced as a whole') ~ '.'
    ) %}
  {% endif %}
{% endmacro %}


{# Why a run that freezes schemas replaces no table: what would change in its columns; empty if it freezes none, or nothing
   would. #}
{% macro frozen_replacement(existing_relation, query, is_other) %}
  {% if not sparkevolve.freezes_schema() %}
    {% do return([]) %}
  {% endif %}
  {% set old = sparkevolve.query_fields(existing_relation, 'select * from ' ~ existing_relation) if is_other
    else sparkevolve.read_table(existing_relation).fields %}
  {% set changes = sparkevolve.replaced_columns(old, query.fields) %}
  {% do return([sparkevolve.refuse_frozen_schema(model.unique_id, changes)] if changes else []) %}
{% endmacro %}


{# What changes in a table's columns, as texts; none if they stay as they are. No column of a replaced table is NOT NULL. #}
{% macro replaced_columns(old, new) %}
  {% set texts, before, after = [], {}, {} %}
  {% for field in old %}
    {% do before.update({field.name: sparkevolve.type_text(field.type)}) %}
  {% endfor %}
  {% for field in new %}
    {% do after.update({field.name: sparkevolve.type_text(field.type)}) %}
  {% endfor %}
  {% for name, type in before.items() if name not in after %}
    {% do texts.append('leave out column ' ~ sparkevolve.quote(name) ~ ' ' ~ type) %}
  {% endfor %}
  {% for name, type in after.items() if name not in before %}
    {% do texts.append('add column ' ~ sparkevolve.quote(name) ~ ' ' ~ type) %}
  {% endfor %}
  {% for name, type in after.items() if name in before and before[name] | replace('`', '') != type | replace('`', '') %}
    {% do texts.append('change ' ~ sparkevolve.quote(name) ~ ' from ' ~ before[name] ~ ' to ' ~ type) %}
  {% endfor %}
  {% set required = old | selectattr('required') | map(attribute='name') | list %}
  {% for name in after if name in required %}
    {% do texts.append('let ' ~ sparkevolve.quote(name) ~ ' be NULL') %}
  {% endfor %}
  {% if not texts and before | list != after | list %}
    {% set names = [] %}
    {% for name in after %}
      {% do names.append(sparkevolve.quote(name)) %}
    {% endfor %}
    {% do texts.append('put its columns in the order ' ~ names | join(', ')) %}
  {% endif %}
  {% do return(texts) %}
{% endmacro %}


{# Descriptions of columns are changes of a plan; of a new table all are stored. dbt-spark itself stores each description
   again in each run, in a commit of its own. #}
{% macro store_descriptions(target) %}
  {% set docs = sparkevolve.column_docs() %}
  {% if docs is not none %}
    {% set alter = 'ALTER TABLE ' ~ target ~ ' ALTER COLUMN ' %}
    {% for field in sparkevolve.query_fields(target, 'select * from ' ~ target) %}
      {% set doc = docs.get(field.name | lower) %}
      {% if doc and doc != (field.doc or '') %}
        {% do sparkevolve.run_statement(
          alter ~ sparkevolve.quote(field.name) ~ ' COMMENT ' ~ sparkevolve.constant_literal(doc, true)
        ) %}
      {% endif %}
    {% endfor %}
  {% endif %}
{% endmacro %}
