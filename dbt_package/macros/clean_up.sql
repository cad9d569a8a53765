{# What runs leave behind that end half-way: dbt lets a macro catch no error, and calls nothing of a package when a node has
   failed. #}


{# What `dbt_project.yml` of this package asks for at the end of each dbt command. #}
{% macro end_run(results) %}
  {% if execute and target.type == 'spark' %}
    {% do sparkevolve.tell_of_lost_replacements(results) %}
    {% do sparkevolve.tell_of_errors(results) %}
    {% do sparkevolve.drop_staged_of_failed(results) %}
    {% do sparkevolve.restore_overwrite_mode(results) %}
  {% endif %}
  {% do return('') %}
{% endmacro %}


{# At the end of a dbt command: the staged batches of models that have failed in it. Branches are removed by the next run
   of the model, or by `expire_snapshots`, once they are two days old. #}
{% macro drop_staged_of_failed(results) %}
  {% for result in results %}
    {% set node = result.node %}
    {% if node.resource_type == 'model' and node.config.materialized == 'incremental'
          and result.status | string in ['error', 'partial success'] %}
      {% for relation in sparkevolve.staged_batches(node.schema, node.alias) %}
        {% if sparkevolve.staged_by(relation) == invocation_id %}
          {% do sparkevolve.drop_staged(relation) %}
        {% endif %}
      {% endfor %}
    {% endif %}
  {% endfor %}
{% endmacro %}


{# Say of models that have failed what Spark's error does not. #}
{% macro tell_of_errors(results) %}
  {% for result in results %}
    {% set node = result.node %}
    {% if node.resource_type == 'model' and node.config.materialized == 'incremental'
          and result.status | string in ['error', 'partial success'] %}
      {% set text = sparkevolve.meaning_of_error(result.message or '') %}
      {% if text %}
        {% do sparkevolve.say(node.schema ~ '.' ~ node.alias ~ ': ' ~ text) %}
      {% endif %}
    {% endif %}
  {% endfor %}
{% endmacro %}


{# What an error of Spark's means, and what to do; empty for others. #}
{% macro meaning_of_error(message) %}
  {% if 'MERGE_CARDINALITY_VIOLATION' in message %}
    {% do return(
      'the batch has several rows with one key, and MERGE cannot take two of them for one row of the table. It has changed '
      ~ 'no row. Let the model return each `unique_key` once, such as by '
      ~ '`row_number() over (partition by … order by …) = 1`.'
    ) %}
  {% elif 'Cannot fast-forward' in message and 'is not an ancestor' in message %}
    {% do return(
      'another writer has committed to the table in the moment in which the batch was to be published. None of its rows is '
      ~ 'visible. Run the model again, or `dbt retry`.'
    ) %}
  {% elif 'CommitFailedException' in message %}
    {% do return(
      'another writer has committed at the same time as a statement of this run, which has had no effect. Run the model '
      ~ 'again, or `dbt retry`: it begins from the table as it is then.'
    ) %}
  {% endif %}
  {% do return('') %}
{% endmacro %}


{# Say of full refreshes what Spark's error does not: that their batch is gone, since another run has taken it away. #}
{% macro tell_of_lost_replacements(results) %}
  {% for result in results %}
    {% set node = result.node %}
    {% if node.resource_type == 'model' and node.config.materialized == 'incremental'
          and result.status | string in ['error', 'partial success'] %}
      {% set name = sparkevolve.lost_batch(node.alias, result.message or '') %}
      {% set there = [] %}
      {% for relation in (sparkevolve.staged_batches(node.schema, node.alias) if name is not none else []) %}
        {% do there.append(relation.identifier | lower) %}
      {% endfor %}
      {% if name is not none and name | lower not in there %}
        {% do sparkevolve.say(sparkevolve.lost_batch_text(node.schema ~ '.' ~ node.alias, name)) %}
      {% endif %}
    {% endif %}
  {% endfor %}
{% endmacro %}


{# The name of a staged batch of a table that an error does not find, or a file of which; none for another error. #}
{% macro lost_batch(identifier, message) %}
  {% for line in message.split('\n') %}
    {% set text = line | lower %}
    {% set token = modules.re.search('__dbt_tmp_([0-9a-f]{12})', text) %}
    {% set name = identifier[:200] ~ '__dbt_tmp_' ~ token.group(1) if token else none %}
    {% set words = text | replace(' ', '') | replace('_', '') %}
    {% if token and name | lower in text and ('notfound' in words or 'notbefound' in words or 'doesnotexist' in words) %}
      {% do return(name) %}
    {% endif %}
  {% endfor %}
  {% do return(none) %}
{% endmacro %}


{% macro lost_batch_text(table, name) %}
  {% do return(
    'The batch ' ~ name ~ ', which a run of ' ~ table ~ ' was reading, is gone: another run of the model has begun meanwhile, '
    ~ 'and takes the batch of a full refresh with `full_refresh_schema: replace` away, so that this replaces nothing of what '
    ~ 'it loads; or somebody has dropped it. The table was not replaced. If that was a full refresh, run it again '
    ~ 'when no other run of the model is under way.'
  ) %}
{% endmacro %}


{# The tables of a schema that are called like the staged batches of a table, or of any one. #}
{% macro staged_batches(schema, identifier=none) %}
  {% set found = [] %}
  {% for row in sparkevolve.rows('show tables in ' ~ schema) %}
    {% set parts = row[1].split('__dbt_tmp_') %}
    {% if parts | length > 1 and modules.re.match('[0-9a-f]{12}$', parts[-1])
          and (identifier is none or row[1] | lower == (identifier[:200] ~ '__dbt_tmp_' ~ parts[-1]) | lower) %}
      {% do found.append(api.Relation.create(schema=schema, identifier=row[1])) %}
    {% endif %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# The dbt command that has staged a batch; none for a table that is somebody else's. #}
{% macro staged_by(relation) %}
  {% for row in sparkevolve.rows('show tblproperties ' ~ relation) if row[0] == 'sparkevolve.staged-by' %}
    {% do return(row[1]) %}
  {% endfor %}
  {% do return(none) %}
{% endmacro %}


{# The tables of a schema that are called like those that `check` makes. #}
{% macro tables_of_checks(schema) %}
  {% set found = [] %}
  {% for row in sparkevolve.rows('show tables in ' ~ schema) if modules.re.match('sparkevolve_check_[0-9a-f]{12}$', row[1]) %}
    {% do found.append(api.Relation.create(schema=schema, identifier=row[1])) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# `dbt run-operation sparkevolve.clean_up --args '{hours: 48}'`: remove the staged batches in the target's schema that runs
   have left behind, and the tables of checks that have failed, that nobody has written to for so long. #}
{% macro clean_up(hours=48) %}
  {% if execute %}
    {% do sparkevolve.remove_left_behind(sparkevolve.staged_batches(target.schema), hours, 'a run') %}
    {% do sparkevolve.remove_left_behind(sparkevolve.tables_of_checks(target.schema), hours, 'a check') %}
  {% endif %}
{% endmacro %}


{# Remove those of some tables of ours that nobody has written to for so many hours. #}
{% macro remove_left_behind(relations, hours, who) %}
  {% for relation in relations %}
    {% set last = sparkevolve.rows(
      'select cast(max(unix_millis(timestamp)) as string) from ' ~ relation ~ '.metadata_log_entries'
    )[0][0] %}
    {% if sparkevolve.staged_by(relation) is not none and last is not none
          and sparkevolve.epoch_seconds() - (last | int) // 1000 > hours * 3600 %}
      {% do sparkevolve.say('Removing ' ~ relation ~ ', which ' ~ who ~ ' has left behind') %}
      {% do sparkevolve.drop_staged(relation) %}
    {% endif %}
  {% endfor %}
{% endmacro %}
