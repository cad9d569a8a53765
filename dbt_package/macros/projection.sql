{# How each column of the refreshed list gets its value from the staged batch.

   A projection is a small tree that mirrors the type, a mapping with its `kind`: `keep` takes the value as it is, `cast`
   casts it up to the wider `type`, `uuid` writes the one form of a uuid, `pad` writes the previous value, or NULL, of a `type`; `struct` has `members`, each
   with its `name` in the table, its `source` in the staged struct, and its `projection`; `array` and `map` have the
   projection of what is `within`. Nested values are rebuilt by name: Spark would write the fields of a struct by
   position, and so swap them without an error. #}


{# The SQL expression of a value. `value` is the expression of the staged value, `previous` that of the value in the row
   that is replaced, or none to forget it, and `depth` how many lambdas enclose it. #}
{% macro render_projection(projection, value, previous=none, depth=0) %}
  {% if projection.kind == 'keep' %}
    {% do return(value) %}
  {% elif projection.kind == 'cast' %}
    {% do return('CAST(' ~ value ~ ' AS ' ~ projection.type ~ ')') %}
  {% elif projection.kind == 'uuid' %}
    {% set text = sparkevolve.text_literal('Column ' ~ projection.path ~ ' is uuid in the table, and the model returns: ') %}
    {% do return(
      'IF(' ~ value ~ ' IS NULL OR length(' ~ value ~ ') = 36 AND ' ~ value
      ~ " RLIKE '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}', lower(" ~ value ~ '), raise_error(concat('
      ~ text ~ ', ' ~ value ~ ')))'
    ) %}
  {% elif projection.kind == 'pad' %}
    {% do return('CAST(NULL AS ' ~ projection.type ~ ')' if previous is none else previous) %}
  {% elif projection.kind == 'array' %}
    {# An element has no identity, so there is no telling which previous one it replaces. #}
    {% set variable = 'element_' ~ depth %}
    {% set inner = sparkevolve.render_projection(projection.within, variable, none, depth + 1) %}
    {% do return('transform(' ~ value ~ ', ' ~ variable ~ ' -> ' ~ inner ~ ')') %}
  {% elif projection.kind == 'map' %}
    {% set inner = sparkevolve.render_projection(projection.within, 'value_' ~ depth, none, depth + 1) %}
    {% do return(
      'transform_values(' ~ value ~ ', (key_' ~ depth ~ ', value_' ~ depth ~ ') -> ' ~ inner ~ ')'
    ) %}
  {% endif %}
  {% set parts = [] %}
  {% for member in projection.members %}
    {% set inner = value if member.source is none else value ~ '.' ~ sparkevolve.quote(member.source) %}
    {% set before = none if previous is none else previous ~ '.' ~ sparkevolve.quote(member.name) %}
    {% do parts.append(
      sparkevolve.text_literal(member.name) ~ ', '
      ~ sparkevolve.render_projection(member.projection, inner, before, depth)
    ) %}
  {% endfor %}
  {% do return('IF(' ~ value ~ ' IS NULL, NULL, named_struct(' ~ parts | join(', ') ~ '))') %}
{% endmacro %}


{# The SELECT expression of a column. `alias` names the staged table, `previous_alias` the row that is replaced, to keep
   what the model does not return. #}
{% macro render_column(column, alias, previous_alias=none) %}
  {% set value = alias if column.source is none else alias ~ '.' ~ sparkevolve.quote(column.source) %}
  {% if column.projection.kind == 'keep' %}
    {% do return(value) %}
  {% endif %}
  {% set previous = none if previous_alias is none else previous_alias ~ '.' ~ sparkevolve.quote(column.name) %}
  {% do return(sparkevolve.render_projection(column.projection, value, previous)) %}
{% endmacro %}


{# Whether something in a value is not returned by the model, and could keep its previous value. #}
{% macro may_keep(projection) %}
  {% if projection.kind == 'struct' %}
    {% for member in projection.members %}
      {% if sparkevolve.may_keep(member.projection) %}
        {% do return(true) %}
      {% endif %}
    {% endfor %}
  {% endif %}
  {% do return(projection.kind == 'pad') %}
{% endmacro %}
