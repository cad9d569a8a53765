{# See whether there can be a table for the rows of the model that cannot be placed: before anything of it runs. #}
{% macro sparkevolve__check_dead_letters(target_relation, settings, is_plan=false) %}
  {% if settings.sets_aside %}
    {% set others = {} %}
    {% for node in graph.nodes.values() if node.resource_type in ['model', 'snapshot', 'seed'] %}
      {% if node.unique_id != model.unique_id and node.config.materialized != 'ephemeral'
            and (node.database or target.database) == (target_relation.database or target.database) %}
        {% do others.update({node.unique_id: [node.schema, node.alias]}) %}
      {% endif %}
    {% endfor %}
    {% set letters = adapter.get_relation(
      target_relation.database, target_relation.schema, target_relation.identifier ~ settings.dead_letter_suffix
    ) %}
    {% set other_kind = '' %}
    {% if letters is not none and letters.is_view %}
      {% set other_kind = 'view' %}
    {% elif letters is not none and not letters.is_iceberg %}
      {% set other_kind = 'table of another format' %}
    {% endif %}
    {% do adapter.load_runner().check_dead_letters(target_relation, settings, others, other_kind, is_plan=is_plan) %}
  {% endif %}
{% endmacro %}


{# The literal of where that table is to be, beside the model's; none if the catalog chooses. #}
{% macro sparkevolve__dead_letter_location(settings) %}
  {% set location = sparkevolve__place(this) if settings.sets_aside else none %}
  {% if location is none %}
    {% do return(none) %}
  {% endif %}
  {% do return(adapter.clauses().string_literal(location ~ settings.dead_letter_suffix)) %}
{% endmacro %}


{# Once the rows are visible: one warning, and if the log is JSON the same as data. #}
{% macro sparkevolve__tell_of_dead_letters(target_relation) %}
  {% set letters = adapter.node().letters %}
  {% if letters is not none and letters.bad %}
    {% if flags.LOG_FORMAT == 'json' %}
      {% do log(tojson({'dead_letters': letters.data()}), info=True) %}
    {% endif %}
    {% do sparkevolve__warn([letters.text], target_relation) %}
  {% endif %}
{% endmacro %}
