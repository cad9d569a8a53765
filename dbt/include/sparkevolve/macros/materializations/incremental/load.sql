{# Load a batch into the table that is there. If another writer commits to it before the batch is published, all
   begins again from the table as it is then: what the model has read of it may not be so any more. #}
{% macro sparkevolve__load_existing(target_relation, settings) %}
  {% set runner = adapter.load_runner() %}
  {% set run = namespace(query=none, staged=none, loads=0, described=false, on_branch=false, done=false) %}
  {# Once more than there are loads: an attempt may end in the wait for another thread. #}
  {% for attempt in range(settings.commit_retries + 2) %}
    {% if not run.done %}
      {% set base = runner.end_renames(runner.begin_load(target_relation), target_relation, settings) %}
      {% do sparkevolve__refresh(target_relation) %}
      {% set is_staged = run.staged is not none and settings.strategy != 'snapshot'
         and not adapter.queries().reads(sparkevolve__compiled_query(), target_relation) %}
      {% if not is_staged %}
        {% set run.query = sparkevolve__batch_query(target_relation, settings, base) %}
      {% endif %}
      {% set detected = sparkevolve__detect_schema_change(run.query.columns, base.columns, settings.bookkeeping | list) %}
      {% do sparkevolve__log_detected(target_relation, detected) %}
      {% do sparkevolve__check_schema_change(target_relation, detected, settings, adapter.node().written) %}
      {% if not is_staged %}
        {% set run.staged = sparkevolve__stage_query(target_relation, run.query, settings) %}
      {% endif %}
      {% set good = runner.route(
        target_relation, base, run.staged, settings, model.name, sparkevolve__dead_letter_location(settings)
      ) %}
      {% set load = runner.evolve(
        base, target_relation, good, settings, sparkevolve__column_docs(), detected, run.query.columns,
        model.unique_id, graph
      ) %}
      {% do sparkevolve__log_evolution(target_relation, load) %}
      {% if runner.wait_for_turn(load) %}
        {% set run.loads = run.loads + 1 %}
        {# Before the load: what fails then leaves the rows as they are. #}
        {% if not run.described %}
          {% do persist_docs(target_relation, model) %}
          {% set run.described = true %}
        {% endif %}
        {% if load.changes %}
          {% do sparkevolve__refresh(target_relation) %}
        {% endif %}
        {% set run.on_branch = load.cut is not none %}
        {% if not load.goes_on_branch %}
          {% do runner.publish_letters(settings) %}
        {% endif %}
        {% do sparkevolve__run_load(runner, load) %}
        {% do runner.audit(load) %}
        {% set run.done = runner.publish(load, run.loads > settings.commit_retries) %}
        {% do runner.note_shape(load) %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {% do sparkevolve__rows_are_visible(target_relation, settings, only_hooks=true) %}
  {# What Spark itself has written to the table it knows. #}
  {% if run.on_branch %}
    {% do runner.refresh(target_relation) %}
  {% endif %}
  {% do sparkevolve__tell_of_dead_letters(target_relation) %}
{% endmacro %}


{# The query of the rows to stage: `sql`, and its `columns`. #}
{% macro sparkevolve__batch_query(target_relation, settings, base) %}
  {% if settings.strategy == 'snapshot' %}
    {% do return(sparkevolve__snapshot_changes(target_relation, settings, base)) %}
  {% endif %}
  {% do return(sparkevolve__model_query(target_relation, settings, base.table.schema())) %}
{% endmacro %}


{# Statements go one by one; each is asked for when its turn has come, since a lost connection changes the branch. #}
{% macro sparkevolve__run_load(runner, load) %}
  {% if load.partition_overwrite %}
    {% do runner.set_partition_overwrite(load) %}
    {# That may be another session, which keeps metadata of its own; of a new branch it has none yet. #}
    {% if load.branch is none %}
      {% do sparkevolve__refresh(load.target) %}
    {% endif %}
  {% endif %}
  {% if not load.statements %}
    {% do sparkevolve__nothing_run('OK, an empty batch') %}
  {% endif %}
  {% for number in range(load.steps | length) %}
    {% do sparkevolve__run_step(runner, load, number, 'main' if loop.last else 'load_' ~ number) %}
  {% endfor %}
  {% do runner.reset_partition_overwrite(load) %}
{% endmacro %}


{# As dbt's `statement`, whose result is the node's if it is named `main`. #}
{% macro sparkevolve__run_step(runner, load, number, name) %}
  {% if name == 'main' %}
    {% do log('Writing runtime sql for node "' ~ model.unique_id ~ '"') %}
    {% do write(load.steps[number]) %}
  {% endif %}
  {% set response, rows = runner.run_step(load, number) %}
  {% do store_result(name, response=response, agate_table=rows) %}
{% endmacro %}


{# Whether a table is created or recreated. #}
{% macro sparkevolve__is_new(existing_relation, settings, full_refresh) %}
  {% if existing_relation is none or existing_relation.is_view %}
    {% do return(true) %}
  {% endif %}
  {% do return(full_refresh and (settings.full_refresh_schema == 'replace' or not existing_relation.is_iceberg)) %}
{% endmacro %}
