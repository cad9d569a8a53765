{# From a planned batch to rows that readers see. A `load` is a mapping: `target` and `staged` (rendered names), `table`
   (see `read_table`), `plan`, `batch` (see `measure`), `settings`, the `columns` of the batch, whether it goes
   `on_branch`, the `branch`, whether it `is_last`, so that there is no further attempt, and the snapshot on the branch once
   rows were `deleted` there; none without a DELETE. #}


{# Load a batch and publish it. Returns `done`; `again` if it has to begin again from the table as it is now. #}
{% macro run_load(load) %}
  {% set settings = load.settings %}
  {% if not sparkevolve.is_loaded(load) %}
    {% do sparkevolve.nothing_run('OK, an empty batch') %}
    {% do return('done') %}
  {% endif %}
  {% set written = sparkevolve.branch_of(load.target, load.branch) if load.on_branch else load.target %}
  {% if load.on_branch %}
    {% set age = sparkevolve.epoch_seconds() - load.table.base_ms // 1000 if load.table.base is not none else 0 %}
    {% do sparkevolve.run_statement(sparkevolve.create_branch(
      load.target, load.branch, load.table.base,
      sparkevolve.retain_minutes() + ((age if age > 0 else 0) // 60)
    ), 'branch') %}
  {% endif %}
  {% do sparkevolve.check_audits_before(load) %}
  {% set mode_before = sparkevolve.set_overwrite_mode(settings) %}
  {% set statements = sparkevolve.load_statements(load, written) %}
  {% for sql in statements %}
    {% do sparkevolve.run_statement(sql, 'main' if loop.last else 'load_' ~ loop.index0) %}
    {# Whoever drops the branch now would have the INSERT make it again, from `main` and without what was deleted. #}
    {% if load.on_branch and not loop.last %}
      {% do load.update({'deleted': sparkevolve.read_refs(load.target).get(load.branch, {}).get('snapshot', 'gone')}) %}
    {% endif %}
  {% endfor %}
  {% do sparkevolve.reset_overwrite_mode(mode_before) %}
  {% if not load.on_branch %}
    {% do sparkevolve.check_overwritten(load) %}
    {% do return('done') %}
  {% endif %}
  {% do sparkevolve.check_audits_after(load, written) %}
  {% do return(sparkevolve.publish(load, statements | length)) %}
{% endmacro %}


{# Whether there is anything to do for a batch: an empty one may still replace rows by nothing. Not under `--empty`, where
   dbt has made what the model reads look empty. #}
{% macro is_loaded(load) %}
  {% set settings = load.settings %}
  {% set replaces = settings.strategy == 'microbatch' or sparkevolve.overwrite_mode(settings) == 'STATIC' %}
  {% do return(load.batch.rows > 0 or (replaces and not settings.is_sampled_empty)) %}
{% endmacro %}


{# The statements that load a batch, in order. #}
{% macro load_statements(load, written) %}
  {% set settings, plan, staged = load.settings, load.plan, load.staged %}
  {% if settings.strategy in ['insert_overwrite', 'full_refresh'] %}
    {% do return([sparkevolve.insert_statement(written, staged, plan.columns, true)]) %}
  {% endif %}
  {% set insert = sparkevolve.insert_statement(written, staged, plan.columns) %}
  {% if settings.strategy == 'microbatch' %}
    {% set window = sparkevolve.window_of(load.table.fields, load.columns, settings) %}
    {% set delete = sparkevolve.delete_where(
      written, [sparkevolve.window_condition(plan.unique_key[0], window)] + settings.predicates
    ) %}
    {% do return([delete, insert] if load.batch.rows else [delete]) %}
  {% endif %}
  {% set key = sparkevolve.load_key(load) %}
  {% if key is none %}
    {% do return([insert]) %}
  {% elif settings.strategy == 'merge' %}
    {% do return([sparkevolve.merge_statement(
      written, staged, plan.columns, key, sparkevolve.updated_columns(plan, settings)
    )]) %}
  {% elif settings.removed_columns == 'keep' %}
    {% set insert = sparkevolve.insert_and_keep(written, staged, plan.columns, key, load.target) %}
  {% endif %}
  {% do return([sparkevolve.delete_statement(written, staged, key), insert]) %}
{% endmacro %}


{# The key by which a batch finds the rows that it replaces; none if it has none. #}
{% macro load_key(load) %}
  {% set names = load.plan.unique_key %}
  {% if load.settings.strategy not in ['delete+insert', 'merge'] or not names %}
    {% do return(none) %}
  {% endif %}
  {% set with_null, rebuilt = [], [] %}
  {% for name in names if name | lower not in load.batch.columns_without_null %}
    {% do with_null.append(name) %}
  {% endfor %}
  {% for column in load.plan.columns if column.name in names and column.projection.kind != 'keep' %}
    {% do rebuilt.append(column) %}
  {% endfor %}
  {% do return({
    'names': names, 'null_safe': with_null | length > 0, 'predicates': load.settings.predicates, 'rebuilt': rebuilt
  }) %}
{% endmacro %}


{# Names of the columns that a MERGE updates, as the table has them. #}
{% macro updated_columns(plan, settings) %}
  {% set only = settings.merge_update_columns | map('lower') | list %}
  {% set never = (settings.merge_exclude_columns + plan.unique_key) | map('lower') | list %}
  {% set found = [] %}
  {% for column in plan.columns if column.name | lower not in never and (not only or column.name | lower in only) %}
    {% do found.append(column.name) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# The window of a microbatch: its two `sides` as texts, and the `field` of the event time in the table, or in the batch
   where it is new. #}
{% macro window_of(table_fields, batch_fields, settings) %}
  {% set name = settings.event_time | lower %}
  {% set field = sparkevolve.siblings(table_fields).get(name) or sparkevolve.siblings(batch_fields)[name] %}
  {% set sides = [
    sparkevolve.utc_text(settings.event_time_start), sparkevolve.utc_text(settings.event_time_end)
  ] %}
  {% if field.type.text == 'date' %}
    {% set sides = [sides[0][:10], sides[1][:10]] %}
  {% elif field.type.text == 'timestamp' %}
    {% set sides = [sides[0] ~ '+00:00', sides[1] ~ '+00:00'] %}
  {% endif %}
  {% do return({'field': field, 'sides': sides}) %}
{% endmacro %}


{# The condition that a row is in it. #}
{% macro window_condition(name, window) %}
  {% do return(sparkevolve.between(
    name, sparkevolve.spark_type(window.field.type), window.sides[0], window.sides[1], false, true
  )) %}
{% endmacro %}


{# Check the audits of what will be the rows, as they are staged: for all strategies but those in which a row of the table
   gives a part of them. #}
{% macro check_audits_before(load) %}
  {% if load.settings.audits and not sparkevolve.mixes_rows(load) %}
    {% do sparkevolve.check_audits(
      load,
      'SELECT\n  ' ~ sparkevolve.select_items(load.plan.columns) ~ '\nFROM ' ~ load.staged ~ ' AS DBT_INTERNAL_SOURCE'
    ) %}
  {% endif %}
{% endmacro %}


{# Check the audits of the others on the branch: of all rows that have a key of the batch. #}
{% macro check_audits_after(load, written) %}
  {% if load.settings.audits and sparkevolve.mixes_rows(load) %}
    {% set key = dict(sparkevolve.load_key(load), predicates=[]) %}
    {% do sparkevolve.check_audits(
      load,
      'SELECT *\nFROM ' ~ written ~ ' AS DBT_INTERNAL_DEST\nWHERE ' ~ sparkevolve.key_in_batch(key, load.staged)
    ) %}
  {% endif %}
{% endmacro %}


{% macro mixes_rows(load) %}
  {% set settings = load.settings %}
  {% do return(load.plan.unique_key | length > 0 and (
    settings.strategy == 'merge' or (settings.strategy == 'delete+insert' and settings.removed_columns == 'keep')
  )) %}
{% endmacro %}


{# Refuse audits that cannot be evaluated, before anything is changed: EXPLAIN answers with an error of Spark's where a
   query would end the run, but for what is no SQL at all. #}
{% macro check_audits_can_be_asked(target, staged, columns, audits, changed=[]) %}
  {% if not audits %}
    {% do return('') %}
  {% endif %}
  {% set rows = 'SELECT\n  ' ~ sparkevolve.select_items(columns) ~ '\nFROM ' ~ staged ~ ' AS DBT_INTERNAL_SOURCE' %}
  {% if sparkevolve.audits_error(rows, audits) == '' %}
    {% do return('') %}
  {% endif %}
  {% set lines = [] %}
  {% for audit in audits %}
    {% set error = sparkevolve.audits_error(rows, [audit]) %}
    {% if error %}
      {% do lines.append('  * ' ~ audit ~ ': ' ~ error) %}
    {% endif %}
  {% endfor %}
  {% do sparkevolve.drop_staged(staged) %}
  {% do exceptions.raise_compiler_error(
    "The model's audits cannot be evaluated for " ~ target ~ '. Correct them: each is a condition on the columns of the '
    ~ 'table. ' ~ ('Nothing was written.' if not changed else 'No row was written. This run has changed the table before ('
    ~ changed | join('; ') ~ '), and that stays.') ~ '\n' ~ lines | join('\n')
  ) %}
{% endmacro %}


{# Of a plan: why the run would be refused, for each audit that Spark cannot read over the rows of a query. #}
{% macro unreadable_audits(rows, audits) %}
  {% set refusals = [] %}
  {% if audits and sparkevolve.audits_error(rows, audits) and not sparkevolve.audits_error(rows, ['true']) %}
    {% for audit in audits %}
      {% set error = sparkevolve.audits_error(rows, [audit]) %}
      {% if error %}
        {% do refusals.append(sparkevolve.refuse_unreadable_text('audits', audit, error)) %}
      {% endif %}
    {% endfor %}
  {% endif %}
  {% do return(refusals) %}
{% endmacro %}


{# What Spark says of a query of audits that it cannot plan; empty if it can. #}
{% macro audits_error(rows, audits) %}
  {% do return(sparkevolve.explained_error('an audit', sparkevolve.count_violations(rows, audits))) %}
{% endmacro %}


{# Refuse `incremental_predicates` that Spark cannot read over the columns that the table is to have, before these are
   changed. Without a change the statement that reads them says it, and nothing was written by then: a plan has none. #}
{% macro unreadable_predicates(load, is_plan=false) %}
  {% set settings, texts, refusals = load.settings, [], [] %}
  {% set changes = load.plan.changes | rejectattr('verb', 'equalto', 'described') | list %}
  {% set limits = settings.predicates if settings.replacing and settings.strategy != 'full_refresh' else [] %}
  {% for text in sparkevolve.texts_to_ask(limits, load.plan, this.identifier)
        if (changes or is_plan) and sparkevolve.is_loaded(load) %}
    {# Iceberg's own columns of a table, such as `_file`, are not in a query of it. #}
    {% set own = [] %}
    {% for mention in sparkevolve.mentions(text) if mention.path[0] in sparkevolve.reserved_names() %}
      {% do own.append(mention) %}
    {% endfor %}
    {% if not own %}
      {% do texts.append(text) %}
    {% endif %}
  {% endfor %}
  {% if texts and sparkevolve.predicates_error(load, texts) and not sparkevolve.predicates_error(load, ['true']) %}
    {% for text in texts %}
      {% set error = sparkevolve.predicates_error(load, [text]) %}
      {% if error %}
        {% do refusals.append(sparkevolve.refuse_unreadable_text('incremental_predicates', text, error)) %}
      {% endif %}
    {% endfor %}
  {% endif %}
  {% do return(refusals) %}
{% endmacro %}


{# Those texts of which Spark can be asked before columns are changed: not those with a query of the table itself, which has
   the old ones yet. #}
{% macro texts_to_ask(texts, plan, name) %}
  {% set changes = plan.changes | rejectattr('verb', 'equalto', 'described') | list %}
  {% set found = [] %}
  {% for text in texts if not (
    changes and sparkevolve.has_query(sparkevolve.sql_tokens(text)) and sparkevolve.names_word(text, name)
  ) %}
    {% do found.append(text) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# What Spark says of predicates, read as a load reads them: in a MERGE they may name the batch too. #}
{% macro predicates_error(load, texts) %}
  {% do return(sparkevolve.explained_error('a predicate', sparkevolve.limited_rows(
    load.plan.columns, load.staged, texts, load.settings.strategy == 'merge'
  ))) %}
{% endmacro %}


{% macro limited_rows(columns, staged, texts, with_source) %}
  {% set beside = staged ~ ' AS DBT_INTERNAL_SOURCE' if with_source else '(SELECT 1 AS `sparkevolve_row`)' %}
  {# As in MERGE and DELETE, and not in WHERE, what is not deterministic is refused in a join's condition; but so are some
     queries, too. #}
  {% set joined = [] %}
  {% for text in texts if not sparkevolve.has_query(sparkevolve.sql_tokens(text)) %}
    {% do joined.append(text) %}
  {% endfor %}
  {% do return(
    'SELECT 1 AS found\nFROM ' ~ beside ~ '\nJOIN (\nSELECT\n  ' ~ sparkevolve.select_items(columns) ~ '\nFROM ' ~ staged
    ~ ' AS DBT_INTERNAL_SOURCE\n) AS DBT_INTERNAL_DEST\nON '
    ~ sparkevolve.enclosed_all(joined or ['true']) | join('\n  AND ') ~ '\nWHERE '
    ~ sparkevolve.enclosed_all(texts) | join('\n  AND ')
  ) %}
{% endmacro %}


{# What Spark says of a query that it cannot plan; empty if it can. `what` of the model is in it, for whoever reads the log. #}
{% macro explained_error(what, query) %}
  {# Each line of the answer is a row. #}
  {% set lines = [] %}
  {% for row in sparkevolve.rows(
    'explain /* If this fails, ' ~ what ~ ' of ' ~ model.unique_id ~ ' is no SQL. */ ' ~ query
  ) %}
    {% do lines.append(row[0]) %}
  {% endfor %}
  {% set text = lines | join('\n') %}
  {# A plan has texts and names of the model in it: only what begins so is an error. #}
  {% set found = modules.re.match(
    'Error occurred during query planning:\\s*(?:[\\w.$]+(?:Exception|Error): )*([^\n]*)', text
  ) %}
  {% do return(found.group(1) | trim or text if found else '') %}
{% endmacro %}


{# Refuse rows that do not satisfy an audit, with the number of them and a few examples. #}
{% macro check_audits(load, rows) %}
  {% set audits = load.settings.audits %}
  {% set counts = sparkevolve.rows(sparkevolve.count_violations(rows, audits))[0] %}
  {% set columns = load.plan.unique_key or (load.plan.columns | map(attribute='name') | list)[:4] %}
  {% set lines = [] %}
  {% for audit in audits %}
    {% set count, examples = counts[loop.index0] | int, [] %}
    {% for row in (sparkevolve.rows(sparkevolve.some_violations(rows, audit, columns, 3)) if count else []) %}
      {% set values = [] %}
      {% for name in columns %}
        {% set value = row[loop.index0] %}
        {% do values.append(name ~ ' = ' ~ (value if value is not none else 'NULL')) %}
      {% endfor %}
      {% do examples.append(values | join(', ')) %}
    {% endfor %}
    {% if count %}
      {% do lines.append(
        '  * ' ~ audit ~ ': ' ~ count ~ (' rows' if count != 1 else ' row') ~ ', such as ' ~ examples | join('; ')
      ) %}
    {% endif %}
  {% endfor %}
  {% if lines %}
    {% do sparkevolve.give_up(load) %}
    {% do exceptions.raise_compiler_error(
      'The batch of ' ~ load.target ~ " was not published, since rows in it do not satisfy the model's audits. The rows "
      ~ 'of the table are as they were.\n' ~ lines | join('\n')
    ) %}
  {% endif %}
{% endmacro %}


{# Remove what a load has made beside the table. #}
{% macro give_up(load) %}
  {% if load.on_branch %}
    {% do sparkevolve.run_statement(sparkevolve.drop_branch(load.target, load.branch)) %}
  {% endif %}
  {% do sparkevolve.drop_staged(load.staged) %}
{% endmacro %}


{# Make what is on the branch visible, if it is what was sent, once, and nobody has committed to the table meanwhile. #}
{% macro publish(load, sent) %}
  {% set refs = sparkevolve.read_refs(load.target) %}
  {% set snapshots = sparkevolve.read_snapshots(load) %}
  {% set found = sparkevolve.compare_with_sent(load, sent, refs, snapshots) %}
  {% set main = refs.get('main', {}).get('snapshot') %}
  {% if found == '' and main == load.table.base %}
    {% do sparkevolve.check_older_partitions(load, refs[load.branch].snapshot) %}
    {% set head = refs[load.branch] %}
    {% set catalog = sparkevolve.catalog_of(load.target, head.catalog) %}
    {% do sparkevolve.run_statement(sparkevolve.fast_forward(catalog, load.target, 'main', load.branch)) %}
    {% do sparkevolve.run_statement(sparkevolve.drop_branch(load.target, load.branch)) %}
    {% do sparkevolve.check_published(load, head.snapshot, sparkevolve.read_history(load)) %}
    {% do return('done') %}
  {% endif %}
  {% do sparkevolve.run_statement(sparkevolve.drop_branch(load.target, load.branch)) %}
  {% set why = 'other writers have committed to it meanwhile' if main != load.table.base else found %}
  {% if load.is_last %}
    {% do sparkevolve.drop_staged(load.staged) %}
    {% do exceptions.raise_compiler_error(
      'The batch was loaded into ' ~ load.target ~ ' ' ~ (load.settings.commit_retries + 1) ~ ' times, and it was not '
      ~ "published: the last time, " ~ why ~ ". The table's rows are as others have left them, none of this run's is "
      ~ 'visible. Run the model again when the table is written to less, or set a larger `commit_retries`.'
    ) %}
  {% endif %}
  {% do log(load.target ~ ': ' ~ why ~ ', so the batch is loaded again', info=True) %}
  {% do return('again') %}
{% endmacro %}


{# An overwrite of partitions leaves files of an older partitioning in place, and their rows beside the new ones. Which
   partitioning is the table's now is told by the files that were just written. #}
{% macro check_older_partitions(load, head) %}
  {% if sparkevolve.overwrite_mode(load.settings) != 'DYNAMIC' or load.table.base is none %}
    {% do return('') %}
  {% endif %}
  {% set older = [] %}
  {% for row in sparkevolve.rows(
    'select cast(spec_id as string) from ' ~ load.target ~ '.files version as of ' ~ load.table.base
    ~ ' where content = 0 group by spec_id except select cast(data_file.spec_id as string) from ' ~ load.target
    ~ '.entries version as of ' ~ head ~ ' where status = 1 and snapshot_id = ' ~ head
  ) %}
    {% do older.append(row[0]) %}
  {% endfor %}
  {% if older %}
    {% do sparkevolve.give_up(load) %}
    {% do exceptions.raise_compiler_error(
      'The batch of ' ~ load.target ~ ' was not published: the table has files from before its partitioning was changed, '
      ~ 'which an overwrite of partitions leaves in place, so their rows would be there beside the new ones. The rows of '
      ~ 'the table are as they were. ' ~ sparkevolve.rewrite_hint(load.target)
    ) %}
  {% endif %}
{% endmacro %}


{# The same where no branch is between: files of two partitionings are seen before anything is written, and of a table that
   has none yet of its new one the INSERT tells which that is. #}
{% macro check_partitionings(table, settings, on_branch) %}
  {% if not on_branch and sparkevolve.has_two_partitionings(table.relation, table, settings) %}
    {% do exceptions.raise_compiler_error(
      table.relation ~ ' cannot be overwritten with `publish: direct`: it has files from before its partitioning was '
      ~ 'changed, which an overwrite of partitions leaves in place, so their rows would be there beside the new ones. '
      ~ 'Nothing was written. ' ~ sparkevolve.rewrite_hint(table.relation)
    ) %}
  {% endif %}
{% endmacro %}


{% macro check_overwritten(load) %}
  {% if sparkevolve.has_two_partitionings(load.target, load.table, load.settings) %}
    {% do sparkevolve.drop_staged(load.staged) %}
    {% do exceptions.raise_compiler_error(
      'The batch of ' ~ load.target ~ ' was written, and its rows are visible beside those that they were to replace: the '
      ~ 'table has files from before its partitioning was changed, which an overwrite of partitions leaves in place. '
      ~ sparkevolve.undo_hint(load) ~ ' ' ~ sparkevolve.rewrite_hint(load.target)
    ) %}
  {% endif %}
{% endmacro %}


{# Whether an overwrite of partitions of a table that has rows meets files of more than one partitioning. #}
{% macro has_two_partitionings(relation, table, settings) %}
  {% if sparkevolve.overwrite_mode(settings) != 'DYNAMIC' or table.base is none %}
    {% do return(false) %}
  {% endif %}
  {# Of data files: one of deleted rows that is left over has none that could be doubled. #}
  {% do return(sparkevolve.rows(
    'select cast(spec_id as string) from ' ~ relation ~ '.files where content = 0 group by spec_id'
  ) | length > 1) %}
{% endmacro %}


{# How a batch that is visible is taken away: by a roll-back, if nothing of others would go with it. A connection of its own to
   Spark has not seen what others have committed since its INSERT. #}
{% macro undo_hint(load) %}
  {% do sparkevolve.run_statement('refresh table ' ~ load.target) %}
  {% set at = sparkevolve.read_refs(load.target).get('main', {}).get('snapshot') %}
  {% set only = sparkevolve.read_snapshots(load).get(at, {}) %}
  {% if only.get('parent') == load.table.base and only.get('replaces_partitions') %}
    {% do return(
      'Take the batch away while nobody else has committed: `CALL '
      ~ sparkevolve.quote(sparkevolve.catalog_of(load.target, load.table.refs.main.catalog))
      ~ ".system.rollback_to_snapshot('" ~ load.target ~ "', " ~ load.table.base ~ ')`.'
    ) %}
  {% endif %}
  {% do return(
    'Others have committed since snapshot ' ~ load.table.base ~ ', so do not roll the table back: their rows would go, too. '
    ~ 'Once the files are rewritten, another run of the model replaces both.'
  ) %}
{% endmacro %}


{% macro rewrite_hint(table) %}
  {% do return(
    "Rewrite the files: `CALL … system.rewrite_data_files(table => '" ~ table
    ~ "', options => map('rewrite-all', 'true'))`, or use another strategy."
  ) %}
{% endmacro %}


{# From when on commits may be later than what the load began with: Iceberg lets a clock be a minute behind the one of the
   commit before. #}
{% macro since_ms(load) %}
  {% do return(load.table.base_ms - 60000) %}
{% endmacro %}


{# The snapshots of a table since a load began, by id: `parent`, `operation`, the number of records `added`, and whether
   whole partitions were replaced. #}
{% macro read_snapshots(load) %}
  {% set found = {} %}
  {% for row in sparkevolve.rows(
    "select cast(snapshot_id as string), cast(parent_id as string), operation, summary['added-records'], "
    ~ "summary['replace-partitions'] from "
    ~ load.target ~ '.snapshots where unix_millis(committed_at) >= ' ~ sparkevolve.since_ms(load)
  ) %}
    {% do found.update({row[0]: {
      'parent': row[1], 'operation': row[2], 'added': row[3] | int if row[3] is not none else 0,
      'replaces_partitions': row[4] == 'true'
    }}) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# Compare what is on the branch with what was sent: dbt-spark sends a statement again after a lost connection, though the
   server may have run it, or be running it. Returns what is wrong, empty if nothing is. #}
{% macro compare_with_sent(load, sent, refs, snapshots) %}
  {% set head = refs.get(load.branch, {}).get('snapshot') %}
  {% if head is none %}
    {% do return('the branch of this run is gone') %}
  {% endif %}
  {% set at = namespace(id=head, is_lost=false, has_deleted=load.deleted in [none, load.table.base]) %}
  {% set chain = [] %}
  {% for _ in range(snapshots | length + 1) %}
    {% if at.id is not none and at.id != load.table.base %}
      {% set at.has_deleted = at.has_deleted or at.id == load.deleted %}
      {% if at.id in snapshots %}
        {% do chain.append(snapshots[at.id]) %}
        {% set at.id = snapshots[at.id].parent %}
      {% else %}
        {% set at.is_lost = true %}
        {% set at.id = none %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {% if at.is_lost %}
    {% do return('its branch does not come from what the run has read') %}
  {% endif %}
  {% if not at.has_deleted %}
    {% do return('somebody has dropped the branch of this run meanwhile') %}
  {% endif %}
  {# Spark cuts a branch off an empty table at an empty snapshot. #}
  {% set made = chain[:-1] if load.table.base is none and chain and chain[-1].added == 0 else chain %}
  {% if made | length > sent %}
    {% do return((made | length) ~ ' commits are on its branch, and ' ~ sent ~ ' statements were sent') %}
  {% endif %}
  {% set inserts = made | selectattr('operation', 'equalto', 'append') | selectattr('added') | list %}
  {% if inserts | length > 1 %}
    {% do return((inserts | length) ~ ' times rows were added on its branch, and one INSERT was sent') %}
  {% endif %}
  {# How partitions are overwritten is a setting of the session, which the models of a session of Spark share. #}
  {% set mode = sparkevolve.overwrite_mode(load.settings) %}
  {% if mode is not none and made and made[0].replaces_partitions != (mode == 'DYNAMIC') %}
    {% do return('another model has changed how its session overwrites partitions') %}
  {% endif %}
  {% if load.settings.strategy != 'merge' or not load.plan.unique_key %}
    {% set added = made[0].added if made else 0 %}
    {# A DELETE alone adds the rows again that were in a file with those that go, where files are copied on write. #}
    {% set is_deleted_only = load.batch.rows == 0 and load.settings.strategy == 'microbatch' and not inserts %}
    {% if load.batch.rows != added and not is_deleted_only %}
      {% do return(added ~ ' rows are on its branch, and the batch has ' ~ load.batch.rows) %}
    {% endif %}
  {% endif %}
  {% do return('') %}
{% endmacro %}


{# The snapshots that a table's readers have seen since a load began, each with its `id` and whether the one of now `has`
   it among its ancestors, or is it. They come in the order of the table's own log, which is not always that of clocks. #}
{% macro read_history(load) %}
  {% set found = [] %}
  {% for row in sparkevolve.rows(
    'select cast(snapshot_id as string), cast(is_current_ancestor as string) from ' ~ load.target
    ~ '.history where unix_millis(made_current_at) >= ' ~ sparkevolve.since_ms(load)
  ) %}
    {% do found.append({'id': row[0], 'has': row[1] == 'true'}) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# See that readers have what was published, and what `main` was when it was moved: Iceberg moves it from any ancestor,
   though it may have been rolled back to one since this run looked. (The answer of `fast_forward` has what Spark's cache
   knew.) #}
{% macro check_published(load, head, history) %}
  {% set at = namespace(last=none, before=none, found=none) %}
  {% for snapshot in history %}
    {% if snapshot.id == head %}
      {% set at.before = at.last %}
      {% set at.found = snapshot %}
    {% endif %}
    {% set at.last = snapshot.id %}
  {% endfor %}
  {% if at.found is none %}
    {% do sparkevolve.drop_staged(load.staged) %}
    {% do exceptions.raise_compiler_error(
      'The batch of ' ~ load.target ~ ' was loaded, and its snapshot ' ~ head ~ ' is not in what readers of the table have '
      ~ 'seen since: fast_forward has ended and moved nothing, or the table was replaced meanwhile. Look whether the rows '
      ~ 'are there before you run the model again.'
    ) %}
  {% elif not at.found.has %}
    {% do sparkevolve.drop_staged(load.staged) %}
    {% do exceptions.raise_compiler_error(
      'The batch of ' ~ load.target ~ ' was published as snapshot ' ~ head ~ ', and somebody has rolled the table back to '
      ~ 'another one since: readers do not see its rows any more. Run the model again to load them.'
    ) %}
  {% elif at.before is not none and at.before != load.table.base %}
    {% do sparkevolve.drop_staged(load.staged) %}
    {% do exceptions.raise_compiler_error(
      'The batch of ' ~ load.target ~ ' was published, and somebody has rolled the table back to snapshot ' ~ at.before
      ~ ' in the moment before: the rows are those of snapshot ' ~ (load.table.base or 'none') ~ ' and of this run. To undo '
      ~ 'both, roll the table back once more; what others have committed since goes, too.'
    ) %}
  {% endif %}
{% endmacro %}


{% macro nothing_run(message) %}
  {% call noop_statement('main', message, 'OK', 0) %}
    -- {{ message }}
  {% endcall %}
{% endmacro %}
