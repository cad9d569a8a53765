{# What each run-operation begins with; `operations.py` has the lists. #}

{# Return the arguments of a run-operation by name: `sparkevolve__arguments('name', dict(kwargs, model=model))`. That the
   macro names `kwargs` lets it take any argument, so that an unknown one is an error that lists those there are. #}
{% macro sparkevolve__arguments(operation, given) %}
  {% do return(adapter.operations().arguments(operation, given)) %}
{% endmacro %}


{# Return the model, snapshot or seed of a name: its `relation`, its checked `settings`, its `config`, its `unique_id`. #}
{% macro sparkevolve__node_named(name) %}
  {% do return(adapter.operations().node_named(graph, name)) %}
{% endmacro %}
