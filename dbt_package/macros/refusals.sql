{# Why a batch is not loaded: one macro for each reason, in the words of the adapter. Each returns the reason and what
   can be done about it. A `switch` is a setting that is off, and whether only since `on_schema_change` is `fail`. #}


{% macro switch(name, frozen) %}
  {% do return({'name': name, 'is_frozen': name in frozen}) %}
{% endmacro %}


{% macro is_off(switch) %}
  {% do return("`on_schema_change` is 'fail'" if switch.is_frozen else '`' ~ switch.name ~ '` is false') %}
{% endmacro %}


{% macro turn_on(switch) %}
  {% do return(
    'set `on_schema_change: append_new_columns_preserve`' if switch.is_frozen else 'set `' ~ switch.name ~ ': true`'
  ) %}
{% endmacro %}


{% macro refuse_no_columns() %}
  {% do return(
    'The model returns no columns. A table cannot be loaded from it: check what the model selects from.'
  ) %}
{% endmacro %}


{% macro refuse_ambiguous(where, group) %}
  {% do return(
    where ~ ' columns whose names differ only in ways that Spark ignores: ' ~ sparkevolve.listed(group)
    ~ '. Spark cannot tell them apart. Rename all but one of them.'
  ) %}
{% endmacro %}


{% macro refuse_reserved(name) %}
  {% do return(
    'The model returns the column ' ~ sparkevolve.quote(name) ~ ', a name that Iceberg keeps for its metadata columns: '
    ~ 'a table that has it can be neither read nor changed by Spark. Give the column another name in the model.'
  ) %}
{% endmacro %}


{% macro refuse_empty_name(path) %}
  {% set where = 'in ' ~ sparkevolve.path_of(path.names[:-1]).text ~ ' a field' if path.names | length > 1 else 'a column' %}
  {% do return(
    'The model returns ' ~ where ~ ' whose name is empty, and Iceberg cannot store one. Give it a name in the model.'
  ) %}
{% endmacro %}


{# A text of SQL names a column or field that is to be renamed. #}
{% macro refuse_renamed_in_text(path, new_name, setting, text) %}
  {% do return(
    '`' ~ setting ~ '` name ' ~ path.text ~ ' (' ~ text | trim ~ '), which `column_renames` renames to '
    ~ sparkevolve.quote(new_name) ~ ': there would be no such column any more. Use the new name in `' ~ setting ~ '`.'
  ) %}
{% endmacro %}


{# Spark takes no query in the condition of a MERGE, whatever it reads. #}
{% macro refuse_query_in_merge(text) %}
  {% do return(
    "One of the model's `incremental_predicates` (" ~ text | trim ~ ') has a query, and Spark takes none in the condition '
    ~ "of a MERGE. Ask for its value in the model with dbt's `run_query`, and write that into the condition, or use "
    ~ '`incremental_strategy: delete+insert`, which takes queries.'
  ) %}
{% endmacro %}


{% macro refuse_unreadable_text(setting, text, reason) %}
  {% do return(
    "Spark cannot evaluate one of the model's `" ~ setting ~ '` (' ~ text | trim ~ ') over the columns that the table is to '
    ~ 'have. Mend it. Spark says: ' ~ reason
  ) %}
{% endmacro %}


{% macro refuse_path_taken(path, obstacles) %}
  {% set first = sparkevolve.first_obstacle(obstacles) %}
  {% do return(
    'The model returns the new column ' ~ path.text ~ ', but ' ~ sparkevolve.holder_text(first.by) ~ ' '
    ~ sparkevolve.path_of(first.names).text ~ ', and Iceberg cannot hold both. '
    ~ 'Give the column another name in the model.'
  ) %}
{% endmacro %}


{% macro refuse_key_not_produced(missing, returned, setting) %}
  {% do return(
    'The ' ~ setting ~ ' ' ~ sparkevolve.listed(missing) ~ ' is not produced by the model, which returns '
    ~ sparkevolve.listed(returned) ~ '. Return it from the model, or change the `' ~ setting ~ '`.'
  ) %}
{% endmacro %}


{% macro refuse_no_partition_source(setting, term, column, fields) %}
  {% set typed = [] %}
  {% for field in fields %}
    {% do typed.append(sparkevolve.quote(field.name) ~ ' ' ~ sparkevolve.type_text(field.type)) %}
  {% endfor %}
  {% do return(
    '`' ~ setting ~ '` has ' ~ term ~ ', and the model returns no ' ~ sparkevolve.quote(column) ~ ', but '
    ~ typed | join(', ') ~ '. Change `' ~ setting ~ '`, or return the column from the model.'
  ) %}
{% endmacro %}


{% macro refuse_other_partition_source(setting, term, column, type, fitting) %}
  {% do return(
    '`' ~ setting ~ '` has ' ~ term ~ ', and ' ~ sparkevolve.quote(column) ~ ' is of type ' ~ type ~ ': ' ~ fitting
    ~ '. Change `' ~ setting ~ '`, or cast the column in the model.'
  ) %}
{% endmacro %}


{% macro refuse_several_in_a_bucket(columns, buckets) %}
  {% set each = [] %}
  {% for column in columns %}
    {% do each.append('bucket(' ~ buckets ~ ', ' ~ column ~ ')') %}
  {% endfor %}
  {% do return(
    '`clustered_by` has ' ~ columns | length ~ ' columns, ' ~ sparkevolve.listed(columns)
    ~ ", and a bucket of Iceberg's is of one column. Name one, or set `partition_by: [" ~ each | join(', ')
    ~ ']` instead, by which a partition is a bucket of each.'
  ) %}
{% endmacro %}


{% macro refuse_key_not_in_table(missing, setting) %}
  {% do return(
    'The ' ~ setting ~ ' ' ~ sparkevolve.listed(missing) ~ ' is not a column of the table. '
    ~ 'Set `on_schema_change: append_new_columns_preserve` to add it, or change the `' ~ setting ~ '`.'
  ) %}
{% endmacro %}


{% macro refuse_key_not_comparable(path, type, setting) %}
  {% do return(
    'The ' ~ setting ~ ' ' ~ path.text ~ ' is of type ' ~ sparkevolve.type_text(type) ~ ', and Spark cannot compare '
    ~ ('maps' if sparkevolve.has_map(type) else 'variants') ~ ': no row can be found by it. Change the `' ~ setting ~ '`, or return another column from the model, such as '
    ~ '`to_json(' ~ path.text ~ ')`, and use that.'
  ) %}
{% endmacro %}


{% macro refuse_no_such_column(names, setting, is_renamed) %}
  {% do return(
    '`' ~ setting ~ '` names ' ~ sparkevolve.listed(names) ~ ', '
    ~ ('which `column_renames` renames' if is_renamed else 'which neither the table nor the model has') ~ '. '
    ~ ('Use the new name in `' ~ setting ~ '`.' if is_renamed else 'Change `' ~ setting ~ '`.')
  ) %}
{% endmacro %}


{# In a table for which Spark resolves no columns. #}
{% macro refuse_cannot_merge() %}
  {% do return(
    'The table has the property `write.spark.accept-any-schema`, with which Spark can run no MERGE, the '
    ~ 'incremental_strategy of the model. Take the property away with `ALTER TABLE … UNSET TBLPROPERTIES '
    ~ "('write.spark.accept-any-schema')`, or set `incremental_strategy: delete+insert`."
  ) %}
{% endmacro %}


{# Only here: with the adapter, `tblproperties` of the model reach a table that is there. #}
{% macro refuse_needs_newer_format(mode) %}
  {% do return(
    "The table has Iceberg's format version 1 and `" ~ mode ~ "` = 'merge-on-read', for which Iceberg needs version 2, so "
    ~ "Spark can delete no rows of it. Change it with `ALTER TABLE … SET TBLPROPERTIES ('" ~ mode
    ~ "' = 'copy-on-write')`, or upgrade the table: `ALTER TABLE … SET TBLPROPERTIES ('format-version' = '2')`."
  ) %}
{% endmacro %}


{% macro refuse_other_partitions(configured, actual) %}
  {% do return(
    'The model is partitioned by ' ~ (configured | join(', ') or 'nothing') ~ ' and the table by '
    ~ (actual | join(', ') or 'nothing') ~ ': to overwrite the partitions that the batch has rows for would replace '
    ~ 'other rows than the model means. Make `partition_by` what the table is partitioned by, change the table with '
    ~ '`ALTER TABLE … ADD, DROP or REPLACE PARTITION FIELD`, or take `partition_by` away if the whole table is to be '
    ~ 'overwritten.'
  ) %}
{% endmacro %}


{% macro refuse_removed_not_null(path, switch) %}
  {% do return(
    'Column ' ~ path.text ~ ' is NOT NULL in the table, and the model no longer returns it, so it cannot be padded '
    ~ 'with NULL. Return it from the model again, or ' ~ sparkevolve.turn_on(switch) ~ ' to make it optional.'
  ) %}
{% endmacro %}


{% macro refuse_null_in_not_null(path, switch) %}
  {% do return(
    'Column ' ~ path.text ~ ' is NOT NULL in the table, and the batch may hold a NULL in it. Keep NULLs out of it in '
    ~ 'the model, or ' ~ sparkevolve.turn_on(switch) ~ ' to make it optional.'
  ) %}
{% endmacro %}


{% macro refuse_identifier_field(path) %}
  {% do return(
    'Column ' ~ path.text ~ ' is an identifier field of the table, which cannot be NULL, and the model does not return '
    ~ 'a value for it in each row. Return it from the model, or take it out of the identifier fields '
    ~ '(ALTER TABLE ... DROP IDENTIFIER FIELDS ' ~ path.text ~ ').'
  ) %}
{% endmacro %}


{# Two types of which the table's cannot hold the model's values. A key of another name that is NULL in old rows would
   find none of them: a key's is named with its setting. Types that differ in what may be NULL alone have one text. `move` is
   the setting that keeps the old column under another name, and gives its name to the new type. #}
{% macro refuse_type_differs(path, old, new, why='', key_setting='', move='') %}
  {% set in_table, in_batch = sparkevolve.type_text(old), sparkevolve.type_text(new) %}
  {% do return(
    'Column ' ~ path.text ~ ' is ' ~ in_table ~ ' in the table, and the model returns ' ~ in_batch ~ '.' ~ why
    ~ (' If ' ~ in_table ~ ' holds all its values, cast it to ' ~ in_table ~ ' in the model; if not, return it'
       if sparkevolve.may_be_cast(new, old) else ' Return it')
    ~ ' under a new name, fill that for old rows'
    ~ (', make that the `' ~ key_setting ~ '`,' if key_setting else ',') ~ ' and retire the old name.'
    ~ (' To keep the old column under another name, and have its name for the new type, set ' ~ move
       ~ '. The docs of dbt-sparkevolve have four questions to ask first, under "Change a type".' if move else '')
  ) %}
{% endmacro %}


{% macro refuse_widening_off(path, old, new, switch) %}
  {% do return(sparkevolve.refuse_type_differs(
    path, old, new, ' It could be widened, but ' ~ sparkevolve.is_off(switch) ~ '.'
  )) %}
{% endmacro %}


{% macro refuse_nested_off(path, old, new, switch) %}
  {% do return(sparkevolve.refuse_type_differs(
    path, old, new, ' The fields in it differ, and ' ~ sparkevolve.is_off(switch) ~ '.'
  )) %}
{% endmacro %}


{% macro refuse_map_key_differs(path, old, new, move) %}
  {% do return(sparkevolve.refuse_type_differs(path, old, new, ' The keys of a map cannot evolve.', '', move)) %}
{% endmacro %}


{# What a model asks for that retires a column and returns its name in another type. #}
{% macro replaced_text(path, old_name, old, new) %}
  {% do return(
    '`column_renames` wants ' ~ path.text ~ ' (' ~ sparkevolve.type_text(old) ~ ') to become '
    ~ sparkevolve.quote(old_name) ~ ', and the model returns ' ~ path.text ~ ' as ' ~ sparkevolve.type_text(new)
    ~ ', which would be a new column'
  ) %}
{% endmacro %}


{% macro refuse_replaced_not_added(path, old_name, old, new) %}
  {% do return(
    sparkevolve.replaced_text(path, old_name, old, new) ~ '. `on_schema_change` lets none be added. Set '
    ~ '`on_schema_change: append_new_columns_preserve` for this run.'
  ) %}
{% endmacro %}


{% macro refuse_replaced_key(path, old_name, old, new, key_setting) %}
  {% do return(
    sparkevolve.replaced_text(path, old_name, old, new) ~ '. It is '
    ~ ('in ' if path.names | length > 1 else '') ~ 'the ' ~ key_setting ~ ', and would be NULL in all rows that are there: the batch would find none of them, and add its rows beside them. Return it under a new name, '
    ~ 'fill that for old rows, make that the `' ~ key_setting ~ '`, and retire the old name; or make a full refresh.'
  ) %}
{% endmacro %}


{# What `is_inside` a list or a map no condition can ask for as it asks for a column. #}
{% macro refuse_replaced_condition(path, old_name, old, new, text, is_inside=false) %}
  {% do return(
    sparkevolve.replaced_text(path, old_name, old, new) ~ '. `incremental_predicates` name it (' ~ text | trim
    ~ '), and it would be NULL in all rows that are there: those for which the condition does not hold then would not be '
    ~ 'found, and rows of the batch be added beside them. '
    ~ ('Take that condition out, or have it read ' ~ sparkevolve.quote(old_name) ~ ' there as well. ' if is_inside else
       'Until it is filled for old rows ("Backfill a column" in the docs of dbt-sparkevolve), take that condition out, or '
       ~ 'let it hold for NULL too: `… OR DBT_INTERNAL_DEST.' ~ path.text ~ ' IS NULL`. ')
    ~ 'Or make a full refresh.'
  ) %}
{% endmacro %}


{% macro refuse_replaced_partition(path, old_name, old, new) %}
  {% do return(
    sparkevolve.replaced_text(path, old_name, old, new) ~ '. The table is partitioned by the old one, and the strategy '
    ~ 'replaces partitions: all rows of the batch would be in the partition NULL. Partition the table by another column '
    ~ 'first (`ALTER TABLE … REPLACE PARTITION FIELD`), or use another strategy for this run.'
  ) %}
{% endmacro %}


{% macro refuse_removed_partition(path) %}
  {% do return(
    'The table is partitioned by ' ~ path.text ~ ', which the model no longer returns, and the strategy replaces '
    ~ 'partitions: the rows of each run would go to the partition NULL, in the place of those that are there. Return it '
    ~ 'from the model again, or use another `incremental_strategy`.'
  ) %}
{% endmacro %}


{% macro refuse_rename_both_exist(old, new) %}
  {% set taken = sparkevolve.path_of(old.names[:-1] + [new]).text %}
  {% do return(
    '`column_renames` wants ' ~ old.text ~ ' to become ' ~ sparkevolve.quote(new) ~ ', and the table has both. Rows may have '
    ~ 'values in either of them. Take the rename out of the configuration to go on with both; or bring the values of ' ~ taken
    ~ ' into ' ~ old.text ~ ' with UPDATE where they are missing, drop ' ~ taken ~ ' with ALTER TABLE, and run again.'
  ) %}
{% endmacro %}


{% macro refuse_rename_twice(old, new, other, other_new) %}
  {% do return(
    '`column_renames` wants ' ~ old.text ~ ' to become ' ~ sparkevolve.quote(new) ~ ', and ' ~ other.text ~ ' to become '
    ~ sparkevolve.quote(other_new) ~ '. Leave one of the two in the configuration.'
  ) %}
{% endmacro %}


{# Fields that are to change their names around, which no order of renames does. `aside` is a free name, which the first of
   them can have meanwhile; `after` names the structs in which they are, once these are renamed themselves. #}
{% macro refuse_rename_circle(renames, aside, after) %}
  {% set wants, settings, last = [], [], renames[0].name %}
  {% for rename in renames %}
    {% do wants.append(rename.path.text ~ ' to become ' ~ sparkevolve.quote(rename.name)) %}
    {% do settings.append(
      sparkevolve.config_path(rename.path.names) ~ ': ' ~ sparkevolve.config_name(aside if loop.first else rename.name)
    ) %}
  {% endfor %}
  {% set returned, former = sparkevolve.path_of(after + [aside]).text, sparkevolve.path_of(after + [last]).text %}
  {% do return(
    '`column_renames` wants ' ~ wants[:-1] | join(', ') ~ ' and ' ~ wants[-1] ~ ', and names cannot change places in one run. '
    ~ 'It takes two. For the first, put `column_renames: {' ~ settings | join(', ') ~ '}` in the place of these, and let the '
    ~ 'model return ' ~ returned ~ ' instead of ' ~ former ~ '. For the second, put `column_renames: {'
    ~ sparkevolve.config_path(after + [aside]) ~ ': ' ~ sparkevolve.config_name(last) ~ '}` there, and let it return '
    ~ former ~ ' again. If they have changed places before, take these renames out of the configuration.'
  ) %}
{% endmacro %}


{% macro refuse_rename_old_returned(old, new) %}
  {% do return(
    '`column_renames` wants ' ~ old.text ~ ' to become ' ~ sparkevolve.quote(new) ~ ', and the model still returns the '
    ~ 'old name. Return it under the new name from the model.'
  ) %}
{% endmacro %}


{% macro refuse_rename_path_taken(old, new, obstacles) %}
  {% set first = sparkevolve.first_obstacle(obstacles) %}
  {% do return(
    '`column_renames` wants ' ~ old.text ~ ' to become ' ~ sparkevolve.quote(new) ~ ', but '
    ~ sparkevolve.holder_text(first.by) ~ ' ' ~ sparkevolve.path_of(first.names).text
    ~ ', and Iceberg cannot hold both. Give it another new name, in the configuration and in the model.'
  ) %}
{% endmacro %}


{% macro refuse_unmappable(path, type) %}
  {% do return(
    'The model returns ' ~ path.text ~ ' of the type ' ~ type ~ ', which Iceberg cannot store, and `unmappable_types` '
    ~ "is 'fail'. Cast it in the model."
  ) %}
{% endmacro %}


{% macro refuse_window_within_a_day(name, start, end) %}
  {% do return(
    'The event_time ' ~ sparkevolve.quote(name) ~ ' is a date, and this batch is of the time from ' ~ start ~ ' to '
    ~ end ~ ' UTC, which begins or ends within a day: its rows cannot be told from those of the rest of the day. Use a '
    ~ '`batch_size` of a day or longer and whole days for `--event-time-start` and `--event-time-end`, or return a '
    ~ 'timestamp.'
  ) %}
{% endmacro %}


{% macro refuse_event_time_is_no_time(name, type) %}
  {% do return(
    'The event_time ' ~ sparkevolve.quote(name) ~ ' is of type ' ~ type ~ ', by which the rows of a batch cannot be '
    ~ 'found. Return it as a timestamp, or as a date.'
  ) %}
{% endmacro %}


{% macro refuse_frozen_schema(node, changes) %}
  {% do return(
    '`sparkevolve_freeze_schema` is true in this run, and ' ~ node ~ " would change the table's schema: "
    ~ changes | join('; ') ~ '. Take that back in the model or in its configuration, or run it without this variable.'
  ) %}
{% endmacro %}


{# Only here: PyIceberg and Iceberg's own library can give it one. #}
{% macro refuse_type_of_unknown(path, type) %}
  {% do return(
    'Column ' ~ path.text ~ ' has no type yet in the table (`unknown`), the model returns ' ~ sparkevolve.type_text(type)
    ~ ', and Spark SQL has no statement that gives it one. Load it once with dbt-sparkevolve itself, or return it under '
    ~ 'another name.'
  ) %}
{% endmacro %}


{# Only here: a full refresh with `replace` of a table that somebody has upgraded. #}
{% macro refuse_downgrade(wanted, actual) %}
  {% do return(
    '`tblproperties` say that `format-version` is ' ~ wanted ~ ', and the table that is to be replaced has ' ~ actual
    ~ ', which nobody can take back. Say ' ~ actual ~ ', or leave it out.'
  ) %}
{% endmacro %}


{# Only here: the adapter writes the mapping itself, in the commit that changes the schema. `found` is of
   `names_of_others`. #}
{% macro refuse_name_of_another(table, found) %}
  {% set change = found.change %}
  {% set name = sparkevolve.quote(change.new_name if change.verb == 'renamed' else change.path.names[-1]) %}
  {% set is_hidden, is_rename = table.name_mapping == 'hidden', change.verb == 'renamed' %}
  {% do return(
    ('`column_renames` wants ' ~ change.path.text ~ ' to become ' ~ name if is_rename
     else 'The model returns the new column ' ~ change.path.text)
    ~ ', and the table has the property `schema.name-mapping.default`, which says what the names in files without '
    ~ 'field ids mean (those of `add_files` and `migrate`). '
    ~ ('Spark hides its value, since a name in it looks like an address or a secret, so ' ~ name ~ ' may be the name of '
       ~ 'another column there' if is_hidden
       else 'There ' ~ name ~ ' is the name of a column, and ' ~ change.path.text ~ ' is none, so that may be another one'
       if found.may_be_own else 'There ' ~ name ~ ' is the name of another column, of now or of before')
    ~ ", and Spark's ALTER TABLE would give it to "
    ~ ('this one' if is_rename else 'the new one') ~ ', with the values that such files have: they would be read in the '
    ~ 'wrong column, or not at all. Rewrite the files (`CALL '
    ~ "system.rewrite_data_files(table => '" ~ table.relation ~ "', options => "
    ~ "map('rewrite-all', 'true'))`), then take the property away (`ALTER TABLE " ~ table.relation
    ~ " UNSET TBLPROPERTIES ('schema.name-mapping.default')`), run again, and set it again as it was: older snapshots, "
    ~ 'tags and other branches keep such files, and are read wrongly without it. Or load this batch with dbt-sparkevolve '
    ~ 'itself, which leaves names to their columns' ~ ('.' if is_hidden else ', or use another name.')
  ) %}
{% endmacro %}
