{# Load a batch into the table that is there: stage, plan, evolve, load on a branch, verify, publish. #}


{# The model's query without the semicolon and the comments at its end, so that SQL can follow it. #}
{% macro compiled_query() %}
  {% set found = sparkevolve.split_statements(compiled_code) %}
  {% if found | length > 1 %}
    {% do exceptions.raise_compiler_error(
      'The SQL is ' ~ found | length ~ ' statements with semicolons between them, and it has to be one query: put '
      ~ 'what is to run before or after it into pre-hooks and post-hooks.'
    ) %}
  {% endif %}
  {% do return(found[0] if found else compiled_code) %}
{% endmacro %}


{# The query of the model, checked against its contract if there is one, in names and types that Iceberg can store: `sql`,
   the stored `fields`, the model's own query as `described` and its fields as `returned`, `notes`, and the `format_version`
   of the table. #}
{% macro model_query(target, settings, table=none, version=none) %}
  {% set sql = sparkevolve.compiled_query() %}
  {% if config.get('contract').enforced %}
    {% do get_assert_columns_equivalent(sql) %}
    {% set sql = get_select_subquery(sql) %}
  {% endif %}
  {% set fields = sparkevolve.query_fields(target, sql) %}
  {% set version = (version or settings.tblproperties.get('format-version', '2')) | trim | int(2) %}
  {% set query = sparkevolve.storable_query(sql, fields, table, settings.column_renames, version >= 3) %}
  {% do query.update({
    'described': sql, 'returned': fields, 'fields': sparkevolve.numbered(query.fields), 'format_version': version
  }) %}
  {% do query.update({'refusals': sparkevolve.query_refusals(query, settings)}) %}
  {% do return(query) %}
{% endmacro %}


{# The same for a table that is to be made from it. #}
{% macro query_of_new_table(target, settings) %}
  {% set query = sparkevolve.model_query(target, settings) %}
  {% if not query.refusals %}
    {% do query.refusals.extend(sparkevolve.partition_refusals(query.fields, settings)) %}
  {% endif %}
  {% do return(query) %}
{% endmacro %}


{# What is wrong with the names and types that a model returns, whatever its table looks like. #}
{% macro query_refusals(query, settings) %}
  {% set names = query.fields | map(attribute='name') | list %}
  {% set refusals = sparkevolve.check_source_names(names, settings.replacing, settings.key_setting) %}
  {% for field in query.returned if field.type.fields %}
    {% do refusals.extend(sparkevolve.empty_names(sparkevolve.path_of([field.name]), field.type)) %}
  {% endfor %}
  {% do refusals.extend(sparkevolve.window_refusals(query.returned, settings)) %}
  {% if settings.unmappable_types == 'fail' %}
    {% for note in query.notes if note.type != 'void' %}
      {% do refusals.append(sparkevolve.refuse_unmappable(note.path, note.type)) %}
    {% endfor %}
  {% endif %}
  {% do return(refusals) %}
{% endmacro %}


{# Refuse fields inside of a type whose names are empty; outer ones first. #}
{% macro empty_names(path, type) %}
  {% set refusals = [] %}
  {% for field in type.fields %}
    {% set inner = sparkevolve.inside(path, field.name) %}
    {% if field.name == '' %}
      {% do refusals.append(sparkevolve.refuse_empty_name(inner)) %}
    {% endif %}
    {% do refusals.extend(sparkevolve.empty_names(inner, field.type)) %}
  {% endfor %}
  {% do return(refusals) %}
{% endmacro %}


{# A microbatch whose window cannot be told by the type of its `event_time`. #}
{% macro window_refusals(fields, settings) %}
  {% if settings.strategy != 'microbatch' or settings.event_time_start is none or not settings.event_time %}
    {% do return([]) %}
  {% endif %}
  {% for field in fields if field.name | lower == settings.event_time | lower %}
    {% set type = field.type.text if field.type.kind == 'leaf' else 'a struct, list or map' %}
    {% set sides = [sparkevolve.utc_text(settings.event_time_start), sparkevolve.utc_text(settings.event_time_end)] %}
    {% if type == 'date' and not (sides[0].endswith(' 00:00:00') and sides[1].endswith(' 00:00:00')) %}
      {% do return([sparkevolve.refuse_window_within_a_day(field.name, sides[0], sides[1])]) %}
    {% elif type not in ['date', 'timestamp', 'timestamp_ntz', 'void'] %}
      {% do return([sparkevolve.refuse_event_time_is_no_time(field.name, type)]) %}
    {% endif %}
  {% endfor %}
  {% do return([]) %}
{% endmacro %}


{# A moment in UTC, as text: dbt gives the bounds of a batch in UTC, with or without saying so. #}
{% macro utc_text(moment) %}
  {% set utc = moment.astimezone(modules.pytz.utc) if moment.tzinfo else moment %}
  {% do return(utc.strftime('%Y-%m-%d %H:%M:%S') ~ ('.%06d' | format(utc.microsecond) if utc.microsecond else '')) %}
{% endmacro %}


{# What a run has written before it is refused, as the end of a sentence. #}
{% macro what_was_written(changed, where='') %}
  {% do return('nothing was written' ~ where if not changed else (
    'no row was written' ~ where ~ '. This run has changed the table before (' ~ changed | join('; ') ~ '), and that stays'
  )) %}
{% endmacro %}


{# Stop before anything is written. A run that freezes schemas would refuse `full_refresh_schema: replace`, too. #}
{% macro refuse(target, refusals, changed=[], is_full_refresh=false) %}
  {% if refusals %}
    {% set written = sparkevolve.what_was_written(changed, ' to it') %}
    {% do exceptions.raise_compiler_error(
      'The batch cannot be loaded into ' ~ target ~ ', and ' ~ written ~ ':\n  * ' ~ refusals | join('\n  * ')
      ~ ('\nWith `full_refresh_schema: replace` the full refresh takes the model\'s columns as they are, and no others.'
         if is_full_refresh and not sparkevolve.freezes_schema() else '')
    ) %}
  {% endif %}
{% endmacro %}


{# The same for a batch that is staged, which goes. #}
{% macro refuse_staged(target, staged, refusals, changed=[], is_full_refresh=false) %}
  {% if refusals %}
    {% do sparkevolve.drop_staged(staged) %}
    {% do sparkevolve.refuse(target, refusals, changed, is_full_refresh) %}
  {% endif %}
{% endmacro %}


{# Stop under `on_schema_change: fail` if the columns differ: before the model is computed, and again for a `staged` batch
   whose columns are others. #}
{% macro check_schema_change(target, query, table, settings, changed, staged=none) %}
  {% set detected = sparkevolve.sparkevolve__detect_schema_change(
    query.fields | map(attribute='name') | list, table.fields | map(attribute='name') | list
  ) %}
  {% for text in sparkevolve.schema_change_refusals(
    target, detected, settings, sparkevolve.what_was_written(changed)
  ) %}
    {% if staged is not none %}
      {% do sparkevolve.drop_staged(staged) %}
    {% endif %}
    {% do exceptions.raise_compiler_error(text) %}
  {% endfor %}
{% endmacro %}


{# Under `on_schema_change: fail`, columns that only one side has. #}
{% macro schema_change_refusals(target, detected, settings, written='nothing was written') %}
  {% if settings.on_schema_change != 'fail' or settings.is_refreshed or not (detected.new or detected.removed) %}
    {% do return([]) %}
  {% endif %}
  {% do return([
    'The columns of ' ~ settings.node ~ ' and of its table ' ~ target ~ ' differ, and '
    ~ "on_schema_change is 'fail', so " ~ written ~ '. In the model only: ' ~ (detected.new | join(', ') or 'none')
    ~ '. In the table only: ' ~ (detected.removed | join(', ') or 'none') ~ ". Change the model, or set "
    ~ "on_schema_change to 'append_new_columns_preserve'."
  ]) %}
{% endmacro %}


{# Descriptions of columns by folded name; none if they are not to be stored. #}
{% macro column_docs() %}
  {% if not config.persist_column_docs() %}
    {% do return(none) %}
  {% endif %}
  {% set found = {} %}
  {% for name, column in model.columns.items() %}
    {% do found.update({sparkevolve.unquote(name) | lower: column.description or ''}) %}
  {% endfor %}
  {% do return(found or none) %}
{% endmacro %}


{# What may be done to a table, see `plan_evolution`. #}
{% macro policy_of(settings, table, docs, columns_without_null, partition_names={}) %}
  {% do return({
    'add_columns': settings.add_columns, 'type_widening': settings.type_widening,
    'relax_not_null': settings.relax_not_null, 'nested_evolution': settings.nested_evolution,
    'unique_key': settings.replacing, 'key_setting': settings.key_setting,
    'conditions': sparkevolve.conditions_of(settings.predicates if settings.replacing else []),
    'renames': settings.column_renames,
    'docs': docs, 'columns_without_null': columns_without_null, 'frozen': settings.frozen,
    'identifiers': table.identifiers, 'partition_sources': sparkevolve.partition_sources(table),
    'partition_names': partition_names, 'replaces_all_rows': settings.strategy == 'full_refresh',
    'overwrites_partitions': sparkevolve.overwrite_mode(settings) == 'DYNAMIC'
  }) %}
{% endmacro %}


{# Plan a batch. What partition fields are called, also those of older specs, is asked only where a name is to be new. #}
{% macro plan_batch(table, query, settings, columns_without_null) %}
  {% set docs = sparkevolve.column_docs() %}
  {% set plan = sparkevolve.plan_evolution(
    table.fields, query.fields, sparkevolve.policy_of(settings, table, docs, columns_without_null)
  ) %}
  {% if plan.changes | selectattr('verb', 'in', ['added', 'renamed']) | list %}
    {% set names = sparkevolve.partition_names(table) %}
    {% if names %}
      {% set plan = sparkevolve.plan_evolution(
        table.fields, query.fields, sparkevolve.policy_of(settings, table, docs, columns_without_null, names)
      ) %}
    {% endif %}
  {% endif %}
  {% if not plan.refusals %}
    {% set refusals = sparkevolve.setting_refusals(plan, table, settings) %}
    {% set changed = plan.changes | rejectattr('verb', 'equalto', 'described') | map(attribute='text') | list %}
    {% if changed and sparkevolve.freezes_schema() %}
      {% do refusals.append(sparkevolve.refuse_frozen_schema(settings.node, changed)) %}
    {% endif %}
    {% for change in plan.changes if change.verb == 'widened' and ' from void to ' in change.text %}
      {% do refusals.append(sparkevolve.refuse_type_of_unknown(change.path, change.type)) %}
    {% endfor %}
    {% for found in sparkevolve.names_of_others(table.name_mapping, plan.changes) %}
      {% do refusals.append(sparkevolve.refuse_name_of_another(table, found)) %}
    {% endfor %}
    {% if refusals %}
      {% do return(sparkevolve.refused_plan(refusals)) %}
    {% endif %}
  {% endif %}
  {% do return(plan) %}
{% endmacro %}


{# Settings that name columns which the table will not have, or partitions that it has not, and a strategy whose statements
   Spark cannot run with the table's properties: it would say so once the table is changed. #}
{% macro setting_refusals(plan, table, settings) %}
  {% set refusals = [] %}
  {% set merges = settings.strategy == 'merge' and plan.unique_key | length > 0 %}
  {% set deletes = settings.strategy == 'microbatch'
    or (settings.strategy == 'delete+insert' and plan.unique_key | length > 0) %}
  {% if merges and table.properties.get('write.spark.accept-any-schema', '') | lower == 'true' %}
    {% do refusals.append(sparkevolve.refuse_cannot_merge()) %}
  {% endif %}
  {% for mode, is_used in [['write.delete.mode', deletes], ['write.merge.mode', merges]] %}
    {% if is_used and table.properties.get('format-version') == '1'
          and table.properties.get(mode, '') | lower == 'merge-on-read' %}
      {% do refusals.append(sparkevolve.refuse_needs_newer_format(mode)) %}
    {% endif %}
  {% endfor %}
  {% set known = plan.columns | map(attribute='name') | map('lower') | list %}
  {% set renamed = [] %}
  {% for name in settings.column_renames %}
    {% do renamed.append(sparkevolve.unquote(name) | lower) %}
  {% endfor %}
  {% for setting in ['merge_update_columns', 'merge_exclude_columns'] %}
    {% set unknown = [] %}
    {% for name in settings[setting] if name | lower not in known %}
      {% do unknown.append(name) %}
    {% endfor %}
    {% if unknown %}
      {% set not_renamed = unknown | map('lower') | reject('in', renamed) | list %}
      {% do refusals.append(sparkevolve.refuse_no_such_column(unknown, setting, not not_renamed)) %}
    {% endif %}
  {% endfor %}
  {% for text in settings.predicates if merges and sparkevolve.has_select(text) %}
    {% do refusals.append(sparkevolve.refuse_query_in_merge(text)) %}
  {% endfor %}
  {% do refusals.extend(sparkevolve.renamed_in_texts(plan, settings, table.fields)) %}
  {% if settings.partition_by and settings.strategy == 'insert_overwrite' %}
    {% set wanted = sparkevolve.wanted_partitions(settings) %}
    {% set actual = sparkevolve.parse_partitions(table.partitions) %}
    {% if not sparkevolve.same_partitions(wanted, actual, settings.column_renames) %}
      {% do refusals.append(sparkevolve.refuse_other_partitions(wanted, actual)) %}
    {% endif %}
  {% endif %}
  {% do return(refusals) %}
{% endmacro %}


{# Refuse texts of SQL that Spark reads after a rename, and that have the old name. If that is another field's then, or the
   same in another case, they may mean it. #}
{% macro renamed_in_texts(plan, settings, fields) %}
  {% set limits = settings.predicates if settings.replacing and settings.strategy != 'full_refresh' else [] %}
  {% set texts, kept, refusals = [], [], [] %}
  {% for setting, conditions in [['incremental_predicates', limits], ['audits', settings.audits]] %}
    {% for text in conditions %}
      {% do texts.append([setting, text]) %}
    {% endfor %}
  {% endfor %}
  {% for change in plan.changes if texts and change.verb in ['renamed', 'added'] %}
    {% set last = [change.new_name] if change.verb == 'renamed' else change.path.names[-1:] %}
    {% do kept.append(sparkevolve.named_by_sql(fields, change.path.names[:-1] + last)) %}
  {% endfor %}
  {% for change in plan.changes if texts and change.verb == 'renamed' %}
    {% set named = sparkevolve.named_by_sql(fields, change.path.names) %}
    {% for setting, text in texts if named not in kept %}
      {% set read = namespace(is_named=false) %}
      {% for mention in sparkevolve.mentions(text) if mention.is_of_table and mention.path[:named | length] == named %}
        {% set read.is_named = true %}
      {% endfor %}
      {% if read.is_named %}
        {% do refusals.append(sparkevolve.refuse_renamed_in_text(change.path, change.new_name, setting, text)) %}
      {% endif %}
    {% endfor %}
  {% endfor %}
  {% do return(refusals) %}
{% endmacro %}


{# The name of a staged batch: a run that ends half-way leaves it, and the end of the dbt command finds it by its name. #}
{% macro staging_relation(target, node_id, attempt) %}
  {% set token = local_md5(invocation_id ~ '/' ~ node_id ~ '/' ~ attempt)[:12] %}
  {% do return(target.incorporate(
    path={'identifier': target.identifier[:200] ~ '__dbt_tmp_' ~ token}, type='table'
  )) %}
{% endmacro %}


{# Evaluate a query once into a table of its own. dbt-spark sends a statement again after a lost connection, so the table
   may be there already, whole. It is not replaced: the server may still be computing the one that was sent first, and would
   put other rows into the table while this run reads it. No other run has its name. Where a catalog gives new tables
   `gc.enabled=false`, Spark would not purge it. #}
{% macro stage(staged, query) %}
  {# Variants need format version 3. #}
  {% set properties = {'format-version': query.format_version} if query.format_version > 2 else {} %}
  {% do properties.update(sparkevolve.staged_properties()) %}
  {% do sparkevolve.run_statement(
    'create table if not exists ' ~ staged ~ ' using iceberg ' ~ sparkevolve.pairs_clause('tblproperties', properties)
    ~ ' as\n' ~ query.sql, 'stage'
  ) %}
{% endmacro %}


{# Properties of a table that goes with the run that has made it. #}
{% macro staged_properties() %}
  {% do return({'sparkevolve.staged-by': invocation_id, 'write.wap.enabled': 'false', 'gc.enabled': 'true'}) %}
{% endmacro %}


{% macro drop_staged(staged) %}
  {% do sparkevolve.run_statement('drop table if exists ' ~ staged ~ ' purge') %}
{% endmacro %}


{# How many `rows` a staged batch has, and which columns (folded names) hold no NULL, of those where it matters: of the
   key, and of those that are NOT NULL in the table; in which columns of the key there are `odd_uuids`, as they may be told
   from uuids in their one form; and of which `type` its rows are, as text. Of a microbatch also how many are `outside` of
   its window, and the `first` and `last` event time, as text. #}
{% macro measure(staged, table, query, settings) %}
  {% set required = table.fields | selectattr('required') | map(attribute='name') | map('lower') | list %}
  {% set wanted = required + settings.replacing | map('lower') | list %}
  {# A rename of this run lets the model return a NOT NULL column under its new name. #}
  {% for name in settings.column_renames.values() %}
    {% do wanted.append(sparkevolve.unquote(name) | lower) %}
  {% endfor %}
  {% set counted, counts = [], ['cast(count(*) as string)'] %}
  {% for field in query.fields if field.name | lower in wanted %}
    {% do counted.append(field.name | lower) %}
    {% do counts.append(
      'cast(count_if(DBT_INTERNAL_DEST.' ~ sparkevolve.quote(field.name) ~ ' is null) as string)'
    ) %}
  {% endfor %}
  {% set texts = [] %}
  {% for field in query.fields if field.name | lower in settings.unique_key | map('lower') and field.type.text == 'string' %}
    {% set value = 'DBT_INTERNAL_DEST.' ~ sparkevolve.quote(field.name) %}
    {% do texts.append(field.name | lower) %}
    {% do counts.append(
      'cast(count_if(length(' ~ value ~ ') <= 36 and ' ~ value ~ " rlike '^[0-9a-fA-F]+(-[0-9a-fA-F]+){4}$' and not "
      ~ value ~ " rlike '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$') as string)"
    ) %}
  {% endfor %}
  {% set window = sparkevolve.window_measures(table.fields, query.fields, settings) %}
  {# A constant, though it looks like an aggregate: no further column is read for it. #}
  {% set row = sparkevolve.rows(
    'select ' ~ (counts + window + ['typeof(first(struct(DBT_INTERNAL_DEST.*)))']) | join(', ')
    ~ ' from ' ~ staged ~ ' as DBT_INTERNAL_DEST'
  )[0] %}
  {% set without_null = [] %}
  {% for name in counted %}
    {% if row[loop.index] == '0' %}
      {% do without_null.append(name) %}
    {% endif %}
  {% endfor %}
  {% set odd_uuids = [] %}
  {% for name in texts %}
    {% if row[loop.index + counted | length] != '0' %}
      {% do odd_uuids.append(name) %}
    {% endif %}
  {% endfor %}
  {% set at = counts | length %}
  {% do return({
    'rows': row[0] | int, 'columns_without_null': without_null, 'odd_uuids': odd_uuids, 'type': row[at + window | length],
    'outside': row[at] | int if window else 0, 'first': row[at + 1] if window else none, 'last': row[at + 2] if window else none
  }) %}
{% endmacro %}


{# See whether a query that is rewritten has returned all that the model returns, once it has run. It names the columns that
   the model had before: one that what it reads has got since is not in it, and would be left out in silence. What a query
   that is not rewritten has returned, the batch says. #}
{% macro check_described_still(target, query, staged=none, changed=[]) %}
  {% if query.is_own %}
    {% do return('') %}
  {% endif %}
  {% set now = sparkevolve.query_fields(target, query.described) %}
  {% if sparkevolve.is_same(sparkevolve.struct_type(now), sparkevolve.struct_type(query.returned)) %}
    {% do return('') %}
  {% endif %}
  {% if staged is not none %}
    {% do sparkevolve.drop_staged(staged) %}
    {% set done = 'It would be left out of the rows, so ' ~ sparkevolve.what_was_written(changed) ~ '. Run the model again.' %}
  {% else %}
    {% set done = target ~ ' was made without that, and its rows are visible. Run the model again with --full-refresh: '
      ~ 'another run would leave NULL in the rows that are there.' %}
  {% endif %}
  {% do exceptions.raise_compiler_error(
    'What the model of ' ~ target ~ ' returns has changed while this run computed it, with something that it reads. ' ~ done
  ) %}
{% endmacro %}


{# Whether the rows of a staged batch have these fields. Spark writes no backticks around names in a type, or does. #}
{% macro is_of_type(batch, fields) %}
  {% set expected = sparkevolve.type_text(sparkevolve.struct_type(fields)) %}
  {% do return(batch.type | replace('`', '') == expected | replace('`', '')) %}
{% endmacro %}


{# Take the fields of a query, and what is wrong with them, from the batch that was staged. #}
{% macro describe_staged(target, staged, query, settings) %}
  {% set fields = sparkevolve.query_fields(target, 'select * from ' ~ staged) %}
  {% for field in fields %}
    {% do field.update({'doc': none}) %}
  {% endfor %}
  {% do query.update({'returned': fields, 'fields': sparkevolve.numbered(fields)}) %}
  {% do query.update({'refusals': sparkevolve.query_refusals(query, settings)}) %}
{% endmacro %}


{# Have keys that are uuids in the table, and in another form in the batch, written and compared in the form that Iceberg
   stores. To Spark such a column is a string like any other, but for filters by what is no uuid: Iceberg's reader takes
   them over if the column is a string, and cannot if it is a uuid. What cannot be told counts as a string. #}
{% macro compare_uuids(target, table, plan, batch) %}
  {% set known, old_names = sparkevolve.siblings(table.fields), {} %}
  {# The table is asked before this run renames anything in it. #}
  {% for change in plan.changes if change.verb == 'renamed' and change.path.names | length == 1 %}
    {% do old_names.update({change.new_name | lower: change.path.names[0]}) %}
  {% endfor %}
  {% for column in plan.columns if column.name | lower in batch.odd_uuids %}
    {% set old_name = old_names.get(column.name | lower, column.name) %}
    {% set is_string = old_name | lower in known and known[old_name | lower].type.text == 'string' %}
    {% if is_string and column.projection.kind == 'keep' %}
      {% set name, lowest, lines = sparkevolve.quote(old_name), '00000000-0000-0000-0000-000000000000', [] %}
      {% for row in sparkevolve.rows(
        'explain select * from ' ~ target ~ ' where ' ~ name ~ " >= '" ~ lowest ~ "' and " ~ name ~ " <= 'no uuid'"
      ) %}
        {% do lines.append(row[0]) %}
      {% endfor %}
      {% set filters = modules.re.search('filters=([^\n]*)', lines | join('\n')) %}
      {% if filters and lowest in filters.group(1) and 'no uuid' not in filters.group(1) %}
        {% do column.update({'projection': {'kind': 'uuid', 'path': sparkevolve.quote(column.name)}}) %}
      {% endif %}
    {% endif %}
  {% endfor %}
{% endmacro %}


{# What is asked of a microbatch, to tell whether it keeps to its window. #}
{% macro window_measures(table_fields, batch_fields, settings) %}
  {% if settings.strategy != 'microbatch' %}
    {% do return([]) %}
  {% endif %}
  {% set window = sparkevolve.window_of(table_fields, batch_fields, settings) %}
  {% set name = 'DBT_INTERNAL_DEST.' ~ sparkevolve.quote(settings.event_time) %}
  {% set is_zoned = window.field.type.text == 'timestamp' %}
  {% set found = [
    'cast(count_if(not ' ~ sparkevolve.enclosed(sparkevolve.window_condition(settings.event_time, window)) ~ ') as string)'
  ] %}
  {% for side in ['min(', 'max('] %}
    {% set value = side ~ name ~ ')' %}
    {% do found.append(
      'cast(to_utc_timestamp(' ~ value ~ ", current_timezone()) as string) || '+00:00'" if is_zoned
      else 'cast(' ~ value ~ ' as string)'
    ) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# Rows of a microbatch that its window does not hold: a second run adds them again. #}
{% macro window_warnings(load) %}
  {% set found = [] %}
  {% if load.settings.strategy == 'microbatch' %}
    {% set sides = sparkevolve.window_of(load.table.fields, load.columns, load.settings).sides %}
    {% set name = load.plan.unique_key[0] %}
    {% set which = ['from ' ~ load.batch.first ~ ' to ' ~ load.batch.last] if load.batch.outside else [] %}
    {% set nulls = ['that is NULL'] if load.batch.rows and name | lower not in load.batch.columns_without_null else [] %}
    {% for rows in which + nulls %}
      {% do found.append(
        'The batch of ' ~ sides[0] ~ ' to ' ~ sides[1] ~ ' has rows with ' ~ sparkevolve.quote(name) ~ ' ' ~ rows
        ~ '. Another run of it does not replace those outside of this window, but adds them again: let the model return '
        ~ 'rows of its window only.'
      ) %}
    {% endfor %}
  {% endif %}
  {% do return(found) %}
{% endmacro %}


{# Load a batch. If another writer commits to the table before the batch is published, all begins again from the table as
   it is then: what the model has read of it may not be so any more. `changed` is what this run has changed in the table, as
   texts. #}
{% macro load_existing(target, settings, changed) %}
  {% set run = namespace(done=false, loads=0, changed=changed) %}
  {% for attempt in range(settings.commit_retries + 3) %}
    {% if not run.done %}
      {% set staged = sparkevolve.staging_relation(target, model.unique_id ~ sparkevolve.window_text(settings), attempt) %}
      {% set table = sparkevolve.read_table(target) %}
      {% set on_branch = settings.publish == 'branch' or settings.removed_columns == 'keep' %}
      {% do sparkevolve.check_session(table, settings, on_branch) %}
      {% do sparkevolve.check_overwrite_mode_lasts(target, settings, run.changed) %}
      {% do sparkevolve.check_table(table, settings, on_branch) %}
      {% do sparkevolve.check_partitionings(table, settings, on_branch) %}
      {% set restored = sparkevolve.end_renames(table) %}
      {% if restored %}
        {% set run.changed = run.changed + restored %}
        {% set table = sparkevolve.read_table(target) %}
      {% endif %}
      {% do sparkevolve.end_replacement(target, table.properties) %}
      {% do sparkevolve.drop_old_branches(table) %}
      {% set query = sparkevolve.model_query(target, settings, table.fields, table.properties.get('format-version')) %}
      {% do sparkevolve.refuse(target, query.refusals, run.changed) %}
      {% do sparkevolve.warn_of_notes(target, query, run.changed) %}
      {% do sparkevolve.check_schema_change(target, query, table, settings, run.changed) %}
      {% do sparkevolve.stage(staged, query) %}
      {% do sparkevolve.check_described_still(target, query, staged, run.changed) %}
      {% set batch = sparkevolve.measure(staged, table, query, settings) %}
      {% if not sparkevolve.is_of_type(batch, query.fields) %}
        {# What the model reads has changed since its query was described: the batch says what is to be loaded. #}
        {% do log(target ~ ': what the model returns has changed since this run has looked, and is planned anew', info=True) %}
        {% do sparkevolve.describe_staged(target, staged, query, settings) %}
        {% do sparkevolve.refuse_staged(target, staged, query.refusals, run.changed) %}
        {% do sparkevolve.check_schema_change(target, query, table, settings, run.changed, staged) %}
        {% set batch = sparkevolve.measure(staged, table, query, settings) %}
      {% endif %}
      {% set plan = sparkevolve.plan_batch(table, query, settings, batch.columns_without_null) %}
      {% do sparkevolve.refuse_staged(target, staged, plan.refusals, run.changed, settings.strategy == 'full_refresh') %}
      {% do sparkevolve.compare_uuids(target, table, plan, batch) %}
      {% set audits = sparkevolve.texts_to_ask(settings.audits, plan, this.identifier) %}
      {% do sparkevolve.check_audits_can_be_asked(target, staged, plan.columns, audits, run.changed) %}
      {% set run.loads = run.loads + 1 %}
      {% set load = {
        'target': target | string, 'staged': staged | string, 'table': table, 'plan': plan, 'batch': batch,
        'settings': settings, 'on_branch': on_branch, 'columns': query.fields,
        'branch': sparkevolve.branch_name(attempt), 'is_last': run.loads > settings.commit_retries,
        'deleted': none
      } %}
      {% do sparkevolve.refuse_staged(target, staged, sparkevolve.unreadable_predicates(load), run.changed) %}
      {# Warnings may be errors: they come before the table is changed. #}
      {% set differences = sparkevolve.begun_warnings(table.fields) + sparkevolve.differences(table, settings)
        if attempt == 0 else [] %}
      {% do sparkevolve.warn(
        target,
        sparkevolve.plan_warnings(plan, settings, table.fields) + differences + sparkevolve.window_warnings(load),
        run.changed
      ) %}
      {% do sparkevolve.make_changes(target, plan.changes) %}
      {% set run.changed = run.changed + plan.changes | map(attribute='text') | list %}
      {% do sparkevolve.log_removed(target, plan, settings) %}
      {% set outcome = sparkevolve.run_load(load) %}
      {% do sparkevolve.drop_staged(staged) %}
      {% set run.done = outcome == 'done' %}
    {% endif %}
  {% endfor %}
{% endmacro %}


{# Which batch of a microbatch model this is. #}
{% macro window_text(settings) %}
  {% do return(settings.event_time_start | string if settings.event_time_start is not none else '') %}
{% endmacro %}


{# A name says when the branch was made, so that a later run knows one that was left behind. #}
{% macro branch_name(attempt) %}
  {% set token = local_md5(invocation_id ~ '/' ~ model.unique_id ~ '/' ~ attempt ~ '/' ~ modules.datetime.datetime.now())[:12] %}
  {% do return('sparkevolve_dbt_' ~ sparkevolve.epoch_seconds() ~ '_' ~ token) %}
{% endmacro %}


{% macro epoch_seconds() %}
  {% set since = modules.datetime.datetime.now(modules.pytz.utc) - modules.datetime.datetime(1970, 1, 1, 0, 0, 0, 0, modules.pytz.utc) %}
  {% do return(since.total_seconds() | int) %}
{% endmacro %}


{# Two days: no run takes so long. #}
{% macro retain_minutes() %}
  {% do return(2880) %}
{% endmacro %}


{# Remove branches that runs have left behind. #}
{% macro drop_old_branches(table) %}
  {% for name in table.refs %}
    {% set found = modules.re.match('sparkevolve_dbt_([0-9]+)_[0-9a-f]+$', name) %}
    {% if found and sparkevolve.epoch_seconds() - found.group(1) | int > sparkevolve.retain_minutes() * 60 %}
      {% do log('Removing the branch ' ~ name ~ ' of ' ~ table.relation ~ ', which an earlier run left behind', info=True) %}
      {% do sparkevolve.run_statement(sparkevolve.drop_branch(table.relation, name)) %}
    {% endif %}
  {% endfor %}
{% endmacro %}


{# Refuse what cannot be published, before anything is computed. #}
{% macro check_table(table, settings, on_branch) %}
  {% do sparkevolve.check_wap(table.relation, table.properties) %}
  {% if not on_branch %}
    {% do return('') %}
  {% endif %}
  {% if 'IcebergSparkSessionExtensions' not in sparkevolve.spark_setting('spark.sql.extensions', '') %}
    {% do exceptions.raise_compiler_error(
      table.relation ~ " cannot be loaded on a branch: this Spark has no `spark.sql.extensions` of Iceberg's, so it knows "
      ~ 'no CREATE BRANCH. Let whoever runs the server add `org.apache.iceberg.spark.extensions.'
      ~ "IcebergSparkSessionExtensions` there, or set `publish: direct` in the model (`meta: {sparkevolve: {publish: "
      ~ "direct}}`), where each statement is visible at once. Nothing was written."
    ) %}
  {% endif %}
{% endmacro %}


{# Refuse a session whose writes to a table with these properties are where no reader of it looks, nor this package. #}
{% macro check_wap(target, properties) %}
  {% if properties.get('write.wap.enabled', 'false') | lower == 'true' %}
    {% for name in ['spark.wap.branch', 'spark.wap.id'] if sparkevolve.spark_setting(name) is not none %}
      {% do exceptions.raise_compiler_error(
        'What was loaded for ' ~ target ~ ' could not be published: the table has `write.wap.enabled`, and this '
        ~ 'session `' ~ name ~ '`, by which what it writes is kept out of `main`, and of the branch of a run. Unset it, or '
        ~ 'take the property away. Nothing was written.'
      ) %}
    {% endfor %}
  {% endif %}
{% endmacro %}


{# A setting of the session; `otherwise` where it is not set. In backticks, since without them all of the statement is
   name and value, also a comment that dbt puts behind it (`query-comment: {append: true}`). #}
{% macro spark_setting(name, otherwise=none) %}
  {% set value = sparkevolve.rows('set ' ~ sparkevolve.quote(name))[0][1] %}
  {% do return(otherwise if value is none or value == '<undefined>' else value) %}
{% endmacro %}


{% macro set_setting(name, value) %}
  {% do sparkevolve.run_statement('set ' ~ sparkevolve.quote(name) ~ ' = ' ~ sparkevolve.quote(value)) %}
{% endmacro %}


{% macro warn_of_notes(target, query, changed=[]) %}
  {% do sparkevolve.warn(target, sparkevolve.note_texts(query), changed) %}
{% endmacro %}


{# Warn of each text, or, where warnings are errors (`--warn-error`), stop with all of them. #}
{% macro warn(about, texts, changed=[]) %}
  {% set options = flags.WARN_ERROR_OPTIONS or {} %}
  {% set are_errors = flags.WARN_ERROR or (options.errors is defined and options.errors('JinjaLogWarning')) %}
  {% if texts and are_errors %}
    {% set written = 'nothing was written' if not changed else (
      'no row was written; this run has changed the table before (' ~ changed | join('; ') ~ '), and that stays'
    ) %}
    {% set mark = '\n  * ' ~ about ~ ': ' %}
    {% do exceptions.raise_compiler_error(
      'Warnings are errors in this run (`--warn-error`, or `warn_error_options`), so ' ~ written ~ ':' ~ mark
      ~ texts | join(mark)
    ) %}
  {% endif %}
  {% for text in texts %}
    {% do exceptions.warn(about ~ ': ' ~ text) %}
  {% endfor %}
{% endmacro %}


{# What of a plan somebody should look at. After a full refresh there are no older rows. #}
{% macro plan_warnings(plan, settings, fields) %}
  {% set found = plan.warnings | list %}
  {% set added = plan.changes | selectattr('verb', 'equalto', 'added') | map(attribute='path') | map(attribute='text') | list %}
  {% for name in plan.unique_key if sparkevolve.quote(name) in added and settings.strategy != 'full_refresh' %}
    {% do found.append(
      'the ' ~ settings.key_setting ~ ' column ' ~ sparkevolve.quote(name) ~ ' is new. It is NULL in all older rows, so they '
      ~ 'do not match the batch and stay.'
    ) %}
  {% endfor %}
  {% set limits = settings.predicates if settings.replacing and settings.strategy != 'full_refresh' else [] %}
  {% for condition in sparkevolve.conditions_of(limits) %}
    {% for change in plan.changes if change.verb == 'added' %}
      {% set path = sparkevolve.named_by_sql(fields, change.path.names) %}
      {% set read = namespace(retired='') %}
      {% for rename in plan.changes if rename.verb == 'renamed' %}
        {% if rename.path.names | map('lower') | list == change.path.names | map('lower') | list %}
          {% set read.retired = rename.new_name | lower %}
        {% endif %}
      {% endfor %}
      {% set is_null = path | length == change.path.names | length %}
      {% if sparkevolve.condition_needs(condition, path, path[:-1] + [read.retired], is_null) %}
        {% do found.append(
          '`incremental_predicates` name ' ~ change.path.text ~ ' (' ~ condition.text | trim ~ '), which is new. It is '
          ~ 'NULL in all older rows: those for which the condition does not hold then stay.'
        ) %}
      {% endif %}
    {% endfor %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{% macro log_removed(target, plan, settings) %}
  {% for path, value in sparkevolve.removed_values(plan, settings).items() %}
    {% do log(target ~ ': column ' ~ path ~ ' is not in the model, ' ~ value, info=True) %}
  {% endfor %}
  {% for path in plan.ignored %}
    {% do log(
      target ~ ': column ' ~ path.text ~ " is not in the table and left out (on_schema_change is 'ignore')", info=True
    ) %}
  {% endfor %}
{% endmacro %}


{# What rows of a run have for each column or field that the model does not return, by its path. #}
{% macro removed_values(plan, settings) %}
  {% set keeps = plan.unique_key and (
    settings.strategy == 'merge' or (settings.strategy == 'delete+insert' and settings.removed_columns == 'keep')
  ) %}
  {% set inside = plan.padded_inside | map(attribute='text') | list %}
  {% set retired, found = sparkevolve.retired_paths(plan.changes), {} %}
  {% for path in plan.removed %}
    {% do found.update({
      retired.get(path.text, path.text): 'rows that are replaced keep its value, new ones get NULL'
                                         if keeps and path.text not in inside else 'padded with NULL'
    }) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# What a field is called from now on, by its path, if a new one gets its name. #}
{% macro retired_paths(changes) %}
  {% set added, found = [], {} %}
  {% for change in changes if change.verb == 'added' %}
    {% do added.append(sparkevolve.path_of(change.path.names | map('lower') | list).text) %}
  {% endfor %}
  {% for change in changes if change.verb == 'renamed' %}
    {% if sparkevolve.path_of(change.path.names | map('lower') | list).text in added %}
      {% do found.update({
        change.path.text: sparkevolve.path_of(change.path.names[:-1] + [change.new_name]).text
      }) %}
    {% endif %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}
