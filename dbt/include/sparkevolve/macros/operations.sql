{# What each run-operation begins with; `operations.py` has the lists. #}

{# Return the arguments of a run-operation by name: `sparkevolve__arguments('name', dict(kwargs, model=model))`. That the
   macro names `kwargs` lets it take any argument, so that an unknown one is an error that lists those there are. With
   `--vars 'sparkevolve_plan_only: true'`, `plan_only` is true. #}
{% macro sparkevolve__arguments(operation, given) %}
  {% do sparkevolve__warn_of_variables() %}
  {% do return(adapter.operations().arguments(operation, given, sparkevolve__is_plan_only())) %}
{% endmacro %}


{# Say what a user has asked for, also with `--quiet`, under which dbt shows no log. #}
{% macro sparkevolve__say(text) %}
  {% do log(text, info=True) %}
  {% if flags.QUIET %}
    {% do print(text) %}
  {% endif %}
{% endmacro %}


{# Return the model, snapshot or seed of a name: its `relation`, its checked `settings`, its `config`, its `unique_id`. #}
{% macro sparkevolve__node_named(name) %}
  {% do return(adapter.operations().node_named(graph, name, var('sparkevolve_freeze_schema', false))) %}
{% endmacro %}
