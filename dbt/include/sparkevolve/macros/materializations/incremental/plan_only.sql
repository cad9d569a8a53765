{# `dbt run --vars 'sparkevolve_plan_only: true'`: say what would happen to each incremental model, change nothing. #}

{% macro sparkevolve__is_plan_only() %}
  {% do return(adapter.checks().plans_only(var('sparkevolve_plan_only', false))) %}
{% endmacro %}


{% macro sparkevolve__plan_only(target_relation, settings, full_refresh) %}
  {% do adapter.node().begin_plan(model.unique_id, sparkevolve__built_before(model.depends_on.nodes)) %}
  {% do sparkevolve__check_dead_letters(target_relation, settings, is_plan=true) %}
  {% do sparkevolve__warn_of_settings() %}
  {% do adapter.checks().grants(target_relation, config.get('grants')) %}
  {% do sparkevolve__run_reading_hooks(target_relation) %}
  {% set existing_relation = adapter.current_relation(target_relation) %}
  {% do sparkevolve__print_plan(
    target_relation, settings, sparkevolve__is_new(existing_relation, settings, full_refresh)
  ) %}
  {% do return({'relations': [target_relation] if existing_relation is not none else []}) %}
{% endmacro %}


{# What a pre-hook only sets or reads it does for a plan too; any other one would have to run first. #}
{% macro sparkevolve__run_reading_hooks(target_relation) %}
  {% for hook in pre_hooks %}
    {% do adapter.checks().plannable(target_relation, render(hook.get('sql'))) %}
  {% endfor %}
  {% do run_hooks(pre_hooks, inside_transaction=False) %}
  {% do run_hooks(pre_hooks, inside_transaction=True) %}
{% endmacro %}


{# What the model reads, and the same run would build before it: the plan is of how that is now. #}
{% macro sparkevolve__built_before(unique_ids) %}
  {% set found = [] %}
  {% for unique_id in unique_ids if unique_id in graph.nodes %}
    {% set node = graph.nodes[unique_id] %}
    {% if node.config.materialized == 'ephemeral' %}
      {% do found.extend(sparkevolve__built_before(node.depends_on.nodes)) %}
    {% elif unique_id in selected_resources %}
      {% do found.append(node.name) %}
    {% endif %}
  {% endfor %}
  {% do return(found | unique | list) %}
{% endmacro %}


{% macro sparkevolve__print_plan(target_relation, settings, is_new) %}
  {% if is_new %}
    {% set plan = sparkevolve__plan_new_table(target_relation, settings) %}
  {% else %}
    {% set base = adapter.load_runner().begin_load(target_relation, is_plan=true).as_before %}
    {% set query = sparkevolve__model_query(target_relation, settings, base.table.schema()) %}
    {% set staged = sparkevolve__stage_query(target_relation, query, settings, with_rows=false) %}
    {% set plan = adapter.preview().of_load(
      base, target_relation, staged, settings, sparkevolve__column_docs(), model.unique_id, graph
    ) %}
    {% set detected = sparkevolve__detect_schema_change(query.columns, base.columns) %}
    {% do plan.refusals.extend(sparkevolve__schema_change_refusals(target_relation, detected, settings)) %}
  {% endif %}
  {% do plan.update({'built_before': sparkevolve__built_before(model.depends_on.nodes)}) %}
  {% set plan = adapter.preview().completed(plan, model.unique_id, graph) %}
  {% do sparkevolve__say(tojson(plan) if flags.LOG_FORMAT == 'json' else adapter.preview().text(plan)) %}
  {% do adapter.preview().refuse(plan) %}
  {% if is_new and plan.is_analysed and config.get('contract').enforced %}
    {% do get_assert_columns_equivalent(sparkevolve__compiled_query()) %}
  {% endif %}
  {% do sparkevolve__nothing_run('planned, nothing was changed') %}
{% endmacro %}


{# A full refresh takes away what the model no longer returns. #}
{% macro sparkevolve__plan_new_table(target_relation, settings) %}
  {% set plan = adapter.preview().of_new_table(target_relation, sparkevolve__compiled_query(), settings) %}
  {% set existing_relation = load_cached_relation(this) %}
  {% if existing_relation is not none and plan.columns %}
    {% set old_names = adapter.get_columns_in_relation(existing_relation) | map(attribute='name') | list %}
    {% do plan.update({'loses': sparkevolve__detect_schema_change(plan.columns, old_names).removed}) %}
    {% if sparkevolve__freezes_schema() and existing_relation.is_table %}
      {% do plan.refusals.extend(sparkevolve__frozen_refusals(target_relation, existing_relation, settings)) %}
    {% endif %}
  {% endif %}
  {% do return(plan) %}
{% endmacro %}


{# What a full refresh would change of the columns, in a run that freezes them. #}
{% macro sparkevolve__frozen_refusals(target_relation, existing_relation, settings) %}
  {% set query = sparkevolve__model_query(target_relation, settings) %}
  {% do return(adapter.preview().frozen(
    settings.frozen_for, sparkevolve__replaced_columns(existing_relation, query.sql)
  )) %}
{% endmacro %}


{% macro sparkevolve__nothing_run(message) %}
  {% call noop_statement('main', message, 'OK', 0) %}
    -- {{ message }}
  {% endcall %}
{% endmacro %}
