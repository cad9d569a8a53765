{# What a model returns that Iceberg cannot store, and the query that returns it in a form that it can: types that Iceberg
   lacks as string, a bare NULL as the type that the table has in its place; one for which there is none is left out. #}


{# Return the query of a model's rows in storable types: `sql`, the `fields` that it returns, with the types that a table
   made from it has, `notes` of what is different in it, and whether it `is_own`, and does not name the model's columns.

   `fields` are the model's own, `table` the fields of the table that the rows are for, or none, and `renames` those that
   this run makes. With `variants`, the table can have those, as in format version 3; in lists and maps they are stored as
   string all the same. #}
{% macro storable_query(sql, fields, table=none, renames={}, variants=false) %}
  {% set rewriter = {
    'notes': [], 'variants': variants, 'renames': sparkevolve.new_names(table, renames) if table is not none and renames else {}
  } %}
  {% set in_table = sparkevolve.struct_type(table) if table is not none else none %}
  {% set chosen, stored = [], [] %}
  {% for field in fields %}
    {% set quoted = sparkevolve.quote(field.name) %}
    {% set found = sparkevolve.store(
      rewriter, 'DBT_INTERNAL_MODEL.' ~ quoted, field.type, sparkevolve.path_of([field.name]),
      sparkevolve.place_of(rewriter, in_table, field.name), 0
    ) %}
    {% if found is not none %}
      {% do chosen.append(found.sql ~ ' as ' ~ quoted) %}
      {% do stored.append(sparkevolve.field(field.name, found.type)) %}
    {% endif %}
  {% endfor %}
  {% set notes = rewriter.notes | selectattr('stored_as', 'equalto', '') | list %}
  {# Without any column left there is nothing to select; the model's own query is not used then. #}
  {% set is_own = not rewriter.notes or not chosen %}
  {% do return({
    'sql': sql if is_own
           else 'select ' ~ chosen | join(', ') ~ ' from (\n' ~ sql ~ '\n) as DBT_INTERNAL_MODEL',
    'fields': stored, 'notes': notes, 'is_own': is_own
  }) %}
{% endmacro %}


{# The type that the table has for a column, or for a field of a struct, under its name or under its new one. #}
{% macro place_of(rewriter, parent, name) %}
  {% if parent is none or parent.kind != 'struct' %}
    {% do return(none) %}
  {% endif %}
  {% set found = namespace(renamed=none, same=none) %}
  {% for field in parent.fields %}
    {% if field.name | lower == name | lower %}
      {% set found.same = field.type %}
    {% elif rewriter.renames and rewriter.renames.get(field.id, field.name) | lower == name | lower %}
      {% set found.renamed = field.type %}
    {% endif %}
  {% endfor %}
  {% do return(found.same if found.same is not none else found.renamed) %}
{% endmacro %}


{# The expression of a value in a storable type, and that type; none if nothing of it can be stored. #}
{% macro store(rewriter, value, type, path, place, depth) %}
  {% if type.kind == 'leaf' %}
    {% do return(sparkevolve.store_leaf(rewriter, value, type, path, place, depth)) %}
  {% endif %}
  {% set before = rewriter.notes | length %}
  {% if type.kind == 'array' %}
    {% set variable = 'element_' ~ depth %}
    {% set inner = place.fields[0].type if place is not none and place.kind == 'array' else none %}
    {% set element = sparkevolve.store(
      rewriter, variable, type.fields[0].type, sparkevolve.inside(path, 'element'), inner, depth + 1
    ) %}
    {% set rebuilt = none if element is none else {
      'sql': 'transform(' ~ value ~ ', ' ~ variable ~ ' -> ' ~ element.sql ~ ')',
      'type': sparkevolve.array_type(element.type)
    } %}
  {% elif type.kind == 'map' %}
    {% set rebuilt = sparkevolve.store_map(rewriter, value, type, path, place, depth) %}
  {% else %}
    {% set rebuilt = sparkevolve.store_struct(rewriter, value, type, path, place, depth) %}
  {% endif %}
  {% if rebuilt is not none and rewriter.notes | length == before %}
    {% do rebuilt.update({'sql': value}) %}
  {% endif %}
  {% do return(rebuilt) %}
{% endmacro %}


{% macro store_leaf(rewriter, value, type, path, place, depth) %}
  {% set is_text = place is not none and place.kind == 'leaf' and place.text == 'string' %}
  {% set has_variant = place is not none and place.text == 'variant' %}
  {% if type.text == 'variant' and ((rewriter.variants and depth == 0 and not is_text) or has_variant) %}
    {% do return({'sql': value, 'type': type}) %}
  {% elif sparkevolve.is_storable(type.text) %}
    {% do return({'sql': value, 'type': sparkevolve.stored_type(type)}) %}
  {% elif type.text == 'void' %}
    {% set stored_as = sparkevolve.spark_type(place) if place is not none and place.text != 'void' else '' %}
    {% do rewriter.notes.append({'path': path, 'type': 'void', 'stored_as': stored_as}) %}
    {% do return({'sql': 'CAST(' ~ value ~ ' AS ' ~ stored_as ~ ')', 'type': place} if stored_as else none) %}
  {% endif %}
  {% do rewriter.notes.append({'path': path, 'type': type.text, 'stored_as': ''}) %}
  {# A cast would take the quotes off a string in a variant. #}
  {% do return({
    'sql': 'to_json(' ~ value ~ ')' if type.text == 'variant' else 'cast(' ~ value ~ ' as string)',
    'type': sparkevolve.leaf('string')
  }) %}
{% endmacro %}


{% macro store_map(rewriter, value, type, path, place, depth) %}
  {% set key, inner = 'key_' ~ depth, 'value_' ~ depth %}
  {% set is_map = place is not none and place.kind == 'map' %}
  {% set before = rewriter.notes | length %}
  {% set stored_key = sparkevolve.store(
    rewriter, key, type.fields[0].type, sparkevolve.inside(path, 'key'),
    place.fields[0].type if is_map else none, depth + 1
  ) %}
  {% set keys_differ = rewriter.notes | length > before %}
  {% set stored_value = sparkevolve.store(
    rewriter, inner, type.fields[1].type, sparkevolve.inside(path, 'value'),
    place.fields[1].type if is_map else none, depth + 1
  ) %}
  {% if stored_key is none or stored_value is none %}
    {% do return(none) %}
  {% endif %}
  {% set variables = ', (' ~ key ~ ', ' ~ inner ~ ') -> ' %}
  {% set result = 'transform_values(' ~ value ~ variables ~ stored_value.sql ~ ')' %}
  {% do return({
    'sql': 'transform_keys(' ~ result ~ variables ~ stored_key.sql ~ ')' if keys_differ else result,
    'type': sparkevolve.map_type(stored_key.type, stored_value.type)
  }) %}
{% endmacro %}


{% macro store_struct(rewriter, value, type, path, place, depth) %}
  {% if not type.fields %}
    {% do rewriter.notes.append({'path': path, 'type': 'struct<>', 'stored_as': ''}) %}
    {% do return(none) %}
  {% endif %}
  {% set parts, fields = [], [] %}
  {% for field in type.fields %}
    {% set found = sparkevolve.store(
      rewriter, value ~ '.' ~ sparkevolve.quote(field.name), field.type, sparkevolve.inside(path, field.name),
      sparkevolve.place_of(rewriter, place, field.name), depth
    ) %}
    {% if found is not none %}
      {% do parts.append(sparkevolve.text_literal(field.name) ~ ', ' ~ found.sql) %}
      {% do fields.append(sparkevolve.field(field.name, found.type)) %}
    {% endif %}
  {% endfor %}
  {% if not parts %}
    {% do return(none) %}
  {% endif %}
  {% do return({
    'sql': 'IF(' ~ value ~ ' IS NULL, NULL, named_struct(' ~ parts | join(', ') ~ '))',
    'type': sparkevolve.struct_type(fields)
  }) %}
{% endmacro %}


{# What a note says. #}
{% macro note_text(note) %}
  {% if note.type == 'void' %}
    {% do return(
      note.path.text ~ ' is a bare NULL, which has no type, and is left out. Cast it in the model to add it.'
    ) %}
  {% elif note.type == 'struct<>' %}
    {% do return(note.path.text ~ ' is a struct without fields, which cannot be stored, and is left out.') %}
  {% endif %}
  {% do return(
    note.path.text ~ ' is of the type ' ~ note.type ~ ', which Iceberg lacks, and is stored as string.'
  ) %}
{% endmacro %}
