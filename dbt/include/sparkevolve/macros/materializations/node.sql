{# What every node does before and after it builds its table or view. #}

{# Run the pre-hooks, and return what is there under the node's name after them: they may have made, dropped or
   replaced it, and dbt has looked before any hook ran. #}
{% macro sparkevolve__begin_node(target_relation) %}
  {% do sparkevolve__freezes_schema() %}
  {% do sparkevolve__warn_of_settings() %}
  {% do adapter.checks().grants(target_relation, config.get('grants')) %}
  {% set compiled_for_a_table = is_incremental() %}
  {% do run_hooks(pre_hooks, inside_transaction=False) %}
  {% do run_hooks(pre_hooks, inside_transaction=True) %}
  {% set existing_relation = adapter.current_relation(target_relation) %}
  {% if compiled_for_a_table and (existing_relation is none or not existing_relation.is_table) %}
    {% do adapter.checks().compiled_without_table(
      target_relation, model.depends_on.macros, model.raw_code, (pre_hooks + post_hooks) | map(attribute='sql') | list
    ) %}
    {% do adapter.node().note_gone(target_relation) %}
  {% endif %}
  {% do return(existing_relation) %}
{% endmacro %}


{# `--vars 'sparkevolve_freeze_schema: true'`: the columns of no table may change in this run. #}
{% macro sparkevolve__freezes_schema() %}
  {% do return(adapter.checks().freezes_schema(var('sparkevolve_freeze_schema', false))) %}
{% endmacro %}


{# Refuse, in such a run, to replace a table by the rows of a query with other columns. #}
{% macro sparkevolve__check_frozen(existing_relation, sql) %}
  {% if sparkevolve__freezes_schema() and existing_relation is not none and existing_relation.is_table %}
    {% do adapter.checks().frozen(
      existing_relation, model.unique_id, sparkevolve__replaced_columns(existing_relation, sql)
    ) %}
  {% endif %}
{% endmacro %}


{% macro sparkevolve__replaced_columns(existing_relation, sql) %}
  {% do return(adapter.preview().of_replacement(
    existing_relation, sql, adapter.get_columns_in_relation(existing_relation)
  )) %}
{% endmacro %}


{# Models bring settings of other adapters along, which mean nothing here. #}
{% macro sparkevolve__warn_of_settings() %}
  {% do sparkevolve__warn_of_variables() %}
  {% do sparkevolve__warn(
    adapter.settings_without_effect(model.unique_id, model.config, model.columns), model.unique_id
  ) %}
{% endmacro %}


{# To dbt, a misspelt variable is one that nobody reads. #}
{% macro sparkevolve__warn_of_variables() %}
  {% do sparkevolve__warn(adapter.checks().unread_variables(graph)) %}
{% endmacro %}


{# Warn, and mark it as dbt marks its own. Under `--warn-error` that is one error with all of the texts: call it before
   anything is written. `what` is what they are about, unless they say that. #}
{% macro sparkevolve__warn(texts, what=none) %}
  {% for text in adapter.node().warnings(texts, what, flags.LOG_FORMAT != 'json') %}
    {% do exceptions.warn(text) %}
  {% endfor %}
{% endmacro %}


{# From here on an error says that the rows can be seen, and what has not been done. #}
{% macro sparkevolve__rows_are_visible(relation, settings={}, only_hooks=false) %}
  {% do adapter.node().rows_are_visible(
    relation,
    adds_again=settings.adds_again | default(false),
    is_refreshed=settings.strategy == 'full_refresh',
    docs=not only_hooks and (config.persist_relation_docs() or config.persist_column_docs()),
    grants=not only_hooks and (config.get('grants') or {}) != {},
    hooks=post_hooks
  ) %}
{% endmacro %}


{# A table that was replaced may have properties for columns that it has no more, with which Spark changes none of them,
   neither in a post-hook nor later. #}
{% macro sparkevolve__unset_gone_metrics(relation) %}
  {% if sparkevolve__is_managed(relation) %}
    {% do adapter.load_runner(relation).unset_gone_metrics(relation, config.get('tblproperties') or {}) %}
  {% endif %}
{% endmacro %}


{% macro sparkevolve__grant_and_describe(relation, existing_relation, full_refresh) %}
  {% do sparkevolve__grant(relation, existing_relation, full_refresh) %}
  {% do adapter.node().begin_step('descriptions') %}
  {% do persist_docs(relation, model) %}
{% endmacro %}


{% macro sparkevolve__grant(relation, existing_relation, full_refresh) %}
  {% do adapter.node().begin_step('grants') %}
  {% set should_revoke = should_revoke(existing_relation, full_refresh_mode=full_refresh) %}
  {% do apply_grants(relation, config.get('grants'), should_revoke=should_revoke) %}
{% endmacro %}


{% macro sparkevolve__run_post_hooks() %}
  {% do adapter.node().begin_step('post-hooks') %}
  {% do run_hooks(post_hooks, inside_transaction=True) %}
  {% do run_hooks(post_hooks, inside_transaction=False) %}
{% endmacro %}


{# What is not incremental is left alone by `sparkevolve_plan_only`. #}
{% macro sparkevolve__not_planned() %}
  {% do adapter.preview().of_none() %}
  {% do sparkevolve__nothing_run('not incremental, not run') %}
  {% do return({'relations': []}) %}
{% endmacro %}


{# What the node has done, as data in dbt's response, which goes to `run_results.json`, and if it is JSON in the log. #}
{% macro sparkevolve__store_response(target_relation, rows=none, source='') %}
  {% set main = load_result('main') %}
  {% if sparkevolve__is_managed(target_relation) %}
    {% do sparkevolve__warn(adapter.load_runner().note_made(target_relation, source)) %}
  {% endif %}
  {% set response = adapter.load_runner().response(target_relation, main.response, rows=rows) %}
  {% do store_result('main', response=response, agate_table=main.table) %}
  {% if flags.LOG_FORMAT == 'json' %}
    {% do log(tojson({'adapter_response': response.data()}), info=True) %}
  {% endif %}
  {% if model.batch %}
    {% do adapter.load_runner().note_batch(model.unique_id, target_relation, response, flags.LOG_FORMAT == 'json') %}
  {% endif %}
{% endmacro %}
