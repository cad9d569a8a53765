{# The text of statements, one each, without `;`: those of the adapter's `sql/`, with a test of equality, and those that
   the adapter does not need, since it changes tables through PyIceberg.

   Names of tables are rendered already. `columns` are the refreshed columns of a plan, in table order. A `key` is a
   mapping of the `names` of its columns, spelled as the table has them, `null_safe` (whether NULL equals NULL), the
   `predicates` that limit which rows of the table to look at, and those of `columns` that are `rebuilt`, whose staged
   values are not yet what is stored. #}


{# A condition that a user has written in parentheses, which a comment at its end leaves alone. #}
{% macro enclosed(condition) %}
  {% do return('(' ~ condition ~ ('\n)' if '--' in condition else ')')) %}
{% endmacro %}


{% macro enclosed_all(conditions) %}
  {% set found = [] %}
  {% for condition in conditions %}
    {% do found.append(sparkevolve.enclosed(condition)) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# The names of columns as they stand between the parentheses of an INSERT. #}
{% macro column_list(columns) %}
  {% do return(sparkevolve.listed(columns | map(attribute='name') | list)) %}
{% endmacro %}


{# The expression of each key column of a staged row, as the table will hold it. #}
{% macro staged_keys(key, alias) %}
  {% set rebuilt = {} %}
  {% for column in key.rebuilt %}
    {% do rebuilt.update({column.name: sparkevolve.render_column(column, alias)}) %}
  {% endfor %}
  {% set found = [] %}
  {% for name in key.names %}
    {% do found.append(rebuilt[name] if name in rebuilt else alias ~ '.' ~ sparkevolve.quote(name)) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# The condition that two rows have the same key, which NULL in it may or may not meet. #}
{% macro key_match(key, staged, stored) %}
  {% set equals = ' <=> ' if key.null_safe else ' = ' %}
  {% set found = [] %}
  {% for value in sparkevolve.staged_keys(key, staged) %}
    {% do found.append(value ~ equals ~ stored ~ '.' ~ sparkevolve.quote(key.names[loop.index0])) %}
  {% endfor %}
  {% do return(found | join(' AND ')) %}
{% endmacro %}


{# The condition that a row of the table has a key of the batch, and meets the predicates. #}
{% macro key_in_batch(key, staged) %}
  {% if key.null_safe %}
    {# In a subquery Spark takes its own columns first: a struct of the batch that is called as the alias of the table would
       be taken for that. So nothing but these values is there. #}
    {% set items, match = [], [] %}
    {% for value in sparkevolve.staged_keys(key, 'DBT_INTERNAL_SOURCE') %}
      {% do items.append(value ~ ' AS key_' ~ loop.index0) %}
      {% do match.append(
        'DBT_INTERNAL_SOURCE.key_' ~ loop.index0 ~ ' <=> DBT_INTERNAL_DEST.'
        ~ sparkevolve.quote(key.names[loop.index0])
      ) %}
    {% endfor %}
    {% set condition = 'EXISTS (SELECT 1 FROM (SELECT ' ~ items | join(', ') ~ ' FROM ' ~ staged
      ~ ' AS DBT_INTERNAL_SOURCE) AS DBT_INTERNAL_SOURCE WHERE ' ~ match | join(' AND ') ~ ')' %}
  {% else %}
    {% set left = [] %}
    {% for name in key.names %}
      {% do left.append('DBT_INTERNAL_DEST.' ~ sparkevolve.quote(name)) %}
    {% endfor %}
    {% set one = left | join(', ') %}
    {% set condition = (one if left | length == 1 else '(' ~ one ~ ')') ~ ' IN (SELECT '
      ~ sparkevolve.staged_keys(key, 'DBT_INTERNAL_SOURCE') | join(', ') ~ ' FROM ' ~ staged
      ~ ' AS DBT_INTERNAL_SOURCE)' %}
  {% endif %}
  {% do return(([condition] + sparkevolve.enclosed_all(key.predicates)) | join('\n  AND ')) %}
{% endmacro %}


{# The DELETE of the target's rows whose whole key is in the batch. #}
{% macro delete_statement(target, staged, key) %}
  {% do return(
    'DELETE FROM ' ~ target ~ ' AS DBT_INTERNAL_DEST\nWHERE ' ~ sparkevolve.key_in_batch(key, staged)
  ) %}
{% endmacro %}


{# The DELETE of the target's rows that meet all of one or more conditions. #}
{% macro delete_where(target, conditions) %}
  {% do return(
    'DELETE FROM ' ~ target ~ ' AS DBT_INTERNAL_DEST\nWHERE '
    ~ sparkevolve.enclosed_all(conditions) | join('\n  AND ')
  ) %}
{% endmacro %}


{% macro select_items(columns, previous_alias=none) %}
  {% set items = [] %}
  {% for column in columns %}
    {% do items.append(
      sparkevolve.render_column(column, 'DBT_INTERNAL_SOURCE', previous_alias) ~ ' AS '
      ~ sparkevolve.quote(column.name)
    ) %}
  {% endfor %}
  {% do return(items | join(',\n  ')) %}
{% endmacro %}


{# The INSERT of the whole batch into every column of the target, removed ones padded. `overwrite` replaces what is there:
   all of it, or under Spark's dynamic partition overwrite the partitions that the batch has rows for. #}
{% macro insert_statement(target, staged, columns, overwrite=false) %}
  {% do return(
    ('INSERT OVERWRITE ' if overwrite else 'INSERT INTO ') ~ target ~ ' (' ~ sparkevolve.column_list(columns)
    ~ ')\nSELECT\n  ' ~ sparkevolve.select_items(columns) ~ '\nFROM ' ~ staged ~ ' AS DBT_INTERNAL_SOURCE'
  ) %}
{% endmacro %}


{# The INSERT that fills removed columns with what the replaced rows have there, read from `previous`. A key with several
   rows in the table has no one previous value: the statement fails and names it. #}
{% macro insert_and_keep(target, staged, columns, key, previous) %}
  {% set kept = [] %}
  {% for column in columns if sparkevolve.may_keep(column.projection) %}
    {% do kept.append(column.name) %}
  {% endfor %}
  {% if not kept %}
    {% do return(sparkevolve.insert_statement(target, staged, columns)) %}
  {% endif %}
  {% set keys, shown = [], [] %}
  {% for name in key.names %}
    {% set quoted = 'DBT_INTERNAL_DEST.' ~ sparkevolve.quote(name) %}
    {% do keys.append(quoted) %}
    {% do shown.append('coalesce(CAST(' ~ quoted ~ " AS STRING), 'NULL')") %}
  {% endfor %}
  {% set several = "raise_error(concat('removed_columns is keep, but the table has several rows with the same unique_key, "
    ~ 'so there is no one previous value to keep. Remove the duplicates, or set removed_columns to null. The key: '
    ~ "', " ~ shown | join(", ', ', ") ~ '))' %}
  {% set items = keys | list %}
  {% for name in kept if name not in key.names %}
    {% set quoted = sparkevolve.quote(name) %}
    {% do items.append(
      'IF(COUNT(*) = 1, FIRST(DBT_INTERNAL_DEST.' ~ quoted ~ '), ' ~ several ~ ') AS ' ~ quoted
    ) %}
  {% endfor %}
  {% do return(
    'INSERT INTO ' ~ target ~ ' (' ~ sparkevolve.column_list(columns) ~ ')\nSELECT\n  '
    ~ sparkevolve.select_items(columns, 'DBT_INTERNAL_PREVIOUS') ~ '\nFROM ' ~ staged ~ ' AS DBT_INTERNAL_SOURCE\n'
    ~ 'LEFT JOIN (\n  SELECT\n    ' ~ items | join(',\n    ') ~ '\n  FROM ' ~ previous ~ ' AS DBT_INTERNAL_DEST\n'
    ~ '  WHERE ' ~ sparkevolve.key_in_batch(key, staged) ~ '\n  GROUP BY ' ~ keys | join(', ')
    ~ '\n) AS DBT_INTERNAL_PREVIOUS\nON ' ~ sparkevolve.key_match(key, 'DBT_INTERNAL_SOURCE', 'DBT_INTERNAL_PREVIOUS')
  ) %}
{% endmacro %}


{# The MERGE that updates rows whose key is in the batch, and inserts the others of the batch. What the model does not
   return keeps its value in an updated row, and is NULL in an inserted one. `update` has the names of the columns to
   update, as the table has them. #}
{% macro merge_statement(target, staged, columns, key, update) %}
  {% set conditions = [sparkevolve.key_match(key, 'DBT_INTERNAL_SOURCE', 'DBT_INTERNAL_DEST')]
    + sparkevolve.enclosed_all(key.predicates) %}
  {% set sets, inserted = [], [] %}
  {% for column in columns %}
    {% do inserted.append(sparkevolve.render_column(column, 'DBT_INTERNAL_SOURCE')) %}
    {% if column.name in update and column.source is not none %}
      {% do sets.append(
        'DBT_INTERNAL_DEST.' ~ sparkevolve.quote(column.name) ~ ' = '
        ~ sparkevolve.render_column(column, 'DBT_INTERNAL_SOURCE', 'DBT_INTERNAL_DEST')
      ) %}
    {% endif %}
  {% endfor %}
  {% set lines = [
    'MERGE INTO ' ~ target ~ ' AS DBT_INTERNAL_DEST',
    'USING ' ~ staged ~ ' AS DBT_INTERNAL_SOURCE',
    'ON ' ~ conditions | join('\n  AND ')
  ] %}
  {% if sets %}
    {% do lines.append('WHEN MATCHED THEN UPDATE SET\n  ' ~ sets | join(',\n  ')) %}
  {% endif %}
  {% do lines.append(
    'WHEN NOT MATCHED THEN INSERT (' ~ sparkevolve.column_list(columns) ~ ')\nVALUES (\n  '
    ~ inserted | join(',\n  ') ~ '\n)'
  ) %}
  {% do return(lines | join('\n')) %}
{% endmacro %}


{# The condition that a column of the target is between two values, given as texts. NULL meets it too with `or_null`, and
   the greatest value itself does not with `open_end`. #}
{% macro between(column, type, low, high, or_null=false, open_end=false) %}
  {% set name = 'DBT_INTERNAL_DEST.' ~ sparkevolve.quote(column) %}
  {% set condition = name ~ ' >= CAST(' ~ sparkevolve.text_literal(low) ~ ' AS ' ~ type ~ ') AND ' ~ name
    ~ (' < ' if open_end else ' <= ') ~ 'CAST(' ~ sparkevolve.text_literal(high) ~ ' AS ' ~ type ~ ')' %}
  {% do return(condition ~ ' OR ' ~ name ~ ' IS NULL' if or_null else condition) %}
{% endmacro %}


{# The condition of the rows for which an audit is false or NULL; an error if it is no boolean. Spark 3.5.0 pushes a
   negated coalesce down to Iceberg with an internal error. #}
{% macro unmet(audit) %}
  {% do return('(' ~ sparkevolve.enclosed(audit) ~ ' AND true) IS NOT TRUE') %}
{% endmacro %}


{# The query of how many rows fail each audit; a predicate that is NULL fails. #}
{% macro count_violations(rows, audits) %}
  {% set counts = [] %}
  {% for audit in audits %}
    {% do counts.append(
      'count_if(' ~ sparkevolve.unmet(audit) ~ ') AS `audit_' ~ loop.index0 ~ '`'
    ) %}
  {% endfor %}
  {% do return('SELECT\n  ' ~ counts | join(',\n  ') ~ '\nFROM (\n' ~ rows ~ '\n) AS DBT_INTERNAL_DEST') %}
{% endmacro %}


{# The query of some columns of a few rows that fail an audit, each column as text. #}
{% macro some_violations(rows, audit, columns, limit) %}
  {% set shown, texts = [], [] %}
  {% for column in columns %}
    {% do shown.append(
      'CAST(DBT_INTERNAL_DEST.' ~ sparkevolve.quote(column) ~ ' AS STRING) AS `text_' ~ loop.index0 ~ '`'
    ) %}
    {% do texts.append('`text_' ~ loop.index0 ~ '`') %}
  {% endfor %}
  {% do return(
    'SELECT DISTINCT ' ~ shown | join(', ') ~ '\nFROM (\n' ~ rows ~ '\n) AS DBT_INTERNAL_DEST\nWHERE '
    ~ sparkevolve.unmet(audit) ~ '\nORDER BY ' ~ texts | join(', ') ~ '\nLIMIT ' ~ limit
  ) %}
{% endmacro %}


{# The rendered name of a branch of a table, to read it and to write it. #}
{% macro branch_of(table, branch) %}
  {% do return(table ~ '.' ~ sparkevolve.quote('branch_' ~ branch)) %}
{% endmacro %}


{# Cut a branch off at a snapshot; none in a table without any, which then gets an empty one on the branch. Unlike the
   adapter, dbt-spark sends a statement again after a lost connection: the branch may be there, with rows on it. #}
{% macro create_branch(table, branch, snapshot_id, retain_minutes) %}
  {% do return(
    'ALTER TABLE ' ~ table ~ ' CREATE BRANCH IF NOT EXISTS ' ~ sparkevolve.quote(branch)
    ~ (' AS OF VERSION ' ~ snapshot_id if snapshot_id is not none else '') ~ ' RETAIN ' ~ retain_minutes ~ ' MINUTES'
  ) %}
{% endmacro %}


{% macro drop_branch(table, branch) %}
  {% do return('ALTER TABLE ' ~ table ~ ' DROP BRANCH IF EXISTS ' ~ sparkevolve.quote(branch)) %}
{% endmacro %}


{# Move a branch of a table to the head of another, if that has come from it. #}
{% macro fast_forward(catalog, table, ref, branch) %}
  {% do return(
    'CALL ' ~ sparkevolve.quote(catalog) ~ '.system.fast_forward(table => ' ~ sparkevolve.text_literal(table)
    ~ ', branch => ' ~ sparkevolve.text_literal(ref) ~ ', to => ' ~ sparkevolve.text_literal(branch) ~ ')'
  ) %}
{% endmacro %}


{# The statements that make the changes of a plan, each a commit of its own, in an order in which each does no harm alone.
   Names come first, so that a new column can have the old name of another. All additions are one statement. Each has its
   `sql`, and the `texts` of what is done with it. #}
{% macro change_statements(table, changes, substitutes=true) %}
  {% set alter = 'ALTER TABLE ' ~ table %}
  {% set changed, described, renames = [], [], [] %}
  {# What takes the name that another field leaves is added after all else, as by the adapter. #}
  {% set additions, replacing, left = [], [], [] %}
  {% for change in changes if change.verb == 'renamed' %}
    {% do left.append(change.path.names | map('lower') | list) %}
  {% endfor %}
  {% for change in changes %}
    {% set column = alter ~ ' ALTER COLUMN ' ~ change.get('after', {}).get('text', '') %}
    {% if change.verb == 'added' %}
      {% do (replacing if change.path.names | map('lower') | list in left else additions).append({
        'text': change.text, 'sql': change.after.text ~ ' ' ~ sparkevolve.spark_type(change.type)
          ~ (' COMMENT ' ~ sparkevolve.constant_literal(change.doc, substitutes) if change.doc else '')
      }) %}
    {% elif change.verb == 'widened' %}
      {% do changed.append({'texts': [change.text], 'sql': column ~ ' TYPE ' ~ sparkevolve.spark_type(change.type)}) %}
    {% elif change.verb == 'relaxed' %}
      {% do changed.append({'texts': [change.text], 'sql': column ~ ' DROP NOT NULL'}) %}
    {% elif change.verb == 'described' %}
      {% do described.append({
        'texts': [change.text], 'sql': column ~ ' COMMENT ' ~ sparkevolve.constant_literal(change.doc, substitutes)
      }) %}
    {% elif change.verb == 'renamed' %}
      {% do renames.append(change) %}
    {% endif %}
  {% endfor %}
  {% set statements = sparkevolve.rename_statements(alter, renames) + changed %}
  {% set added = additions + replacing %}
  {% if added %}
    {% do statements.append({
      'texts': added | map(attribute='text') | list,
      'sql': alter ~ ' ADD COLUMNS (' ~ added | map(attribute='sql') | join(', ') ~ ')'
    }) %}
  {% endif %}
  {% do return(statements + described) %}
{% endmacro %}


{# Make the changes of a plan. Each is told of once it is made: dbt lets a macro catch no error, and where one ends the run
   between two of them, the lines before it say which ones there are. #}
{% macro make_changes(target, changes) %}
  {% for statement in sparkevolve.change_statements(target, changes) %}
    {% do sparkevolve.run_statement(statement.sql, 'evolve') %}
    {% for text in statement.texts %}
      {% do log(target ~ ': ' ~ text, info=True) %}
    {% endfor %}
  {% endfor %}
{% endmacro %}


{# Inner fields first: where a run ends between two of them, the next one finds each by its path of before. A rename whose
   new name another field still has, in any case, waits for that one. Where only the case becomes another, Spark finds the new
   name taken by the field itself: it goes by a name between. After a run that ends there the next one begins again, see
   `end_renames`. #}
{% macro rename_statements(alter, renames) %}
  {% set statements, inner_first = [], [] %}
  {% for depth in renames | map(attribute='path') | map(attribute='names') | map('length') | unique | sort(reverse=true) %}
    {% for rename in renames %}
      {% if rename.path.names | length == depth %}
        {% set parent = sparkevolve.path_of(rename.path.names[:-1]) %}
        {% do inner_first.append(dict(
          rename, parent=parent, leaves=rename.path.text | lower,
          takes=sparkevolve.inside(parent, rename.new_name).text | lower
        )) %}
      {% endif %}
    {% endfor %}
  {% endfor %}
  {% set run = namespace(waiting=inner_first) %}
  {% for _ in renames %}
    {% set ready, leaving = namespace(first=none), {} %}
    {% for rename in run.waiting %}
      {% do leaving.update({rename.leaves: rename.path.text}) %}
    {% endfor %}
    {% for rename in run.waiting %}
      {% if ready.first is none and leaving.get(rename.takes, rename.path.text) == rename.path.text %}
        {% set ready.first = rename %}
      {% endif %}
    {% endfor %}
    {% set chosen = ready.first if ready.first is not none else run.waiting[0] %}
    {% set names = [chosen.path.names[-1], chosen.new_name] %}
    {% if names[0] | lower == names[1] | lower %}
      {% do names.insert(1, sparkevolve.name_between(names[0])) %}
    {% endif %}
    {% for name in names[1:] %}
      {% set path = sparkevolve.inside(chosen.parent, names[loop.index0]).text %}
      {% do statements.append({
        'texts': [chosen.text if loop.last else 'rename ' ~ path ~ ' to ' ~ sparkevolve.quote(name) ~ ' for a moment'],
        'sql': alter ~ ' RENAME COLUMN ' ~ path ~ ' TO ' ~ sparkevolve.quote(name)
      }) %}
    {% endfor %}
    {% set left = [] %}
    {% for rename in run.waiting %}
      {% if rename.path.text != chosen.path.text %}
        {% do left.append(rename) %}
      {% endif %}
    {% endfor %}
    {% set run.waiting = left %}
  {% endfor %}
  {% do return(statements) %}
{% endmacro %}
