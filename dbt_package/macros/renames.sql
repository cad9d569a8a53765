{# Which fields of a table a model's `column_renames` are about, and whether they can be renamed. #}


{# Return the new name by field id, `found`, and the `refusals` of renames that cannot be made. A key is a column's name,
   or the dotted path of a nested field; a name that has dots itself is taken for a column first, and in backticks it is
   one name. A rename that was made in an earlier run has nothing to do. #}
{% macro resolve_renames(table, batch, renames) %}
  {% set found = {} %}
  {% set refusals = [] %}
  {% set places = {} %}
  {% set renamed = {} %}
  {% for old_path, new_name in renames.items() %}
    {% set name = sparkevolve.unquote(new_name) %}
    {% set located = sparkevolve.locate(table, sparkevolve.rename_steps(old_path)) %}
    {% if located is not none and located.field.name != name %}
      {% set path = sparkevolve.path_of(located.names) %}
      {% set old = located.field %}
      {% set place = sparkevolve.path_of(located.names[:-1] + [name | lower]).text %}
      {% set other = places[place] if place in places else renamed.get(old.id) %}
      {% if other is not none %}
        {% do refusals.append(sparkevolve.refuse_rename_twice(path, name, other[0], other[1])) %}
      {% else %}
        {% do places.update({place: [path, name]}) %}
        {% do renamed.update({old.id: [path, name]}) %}
        {% if located.siblings.get(name | lower, old).id != old.id %}
          {% do refusals.append(sparkevolve.refuse_rename_both_exist(path, name)) %}
        {% elif old.name | lower != name | lower
              and old.name | lower in sparkevolve.siblings_at(batch, located.names) %}
          {% do refusals.append(sparkevolve.refuse_rename_old_returned(path, name)) %}
        {% else %}
          {% do found.update({old.id: name}) %}
        {% endif %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {% do return({'found': found, 'refusals': refusals}) %}
{% endmacro %}


{# The renames of what the table does not have, and whose new name a run is to add: the old path as it was written, and
   the path that is added. A rename that was made long ago is none of these: its new name is there. #}
{% macro renames_not_found(table, renames, added) %}
  {% set by_path = {} %}
  {# Whoever writes a path may leave out what a list and a map have around a struct. #}
  {% for path in added %}
    {% do by_path.update({sparkevolve.path_without_collections(path.names): path}) %}
  {% endfor %}
  {% set found = [] %}
  {% for old, new in renames.items() %}
    {% set steps = sparkevolve.rename_steps(old) %}
    {% set above = steps[:-1] | map(attribute=0) | list %}
    {% set key = sparkevolve.path_without_collections(above, sparkevolve.unquote(new)) %}
    {% if key in by_path and sparkevolve.locate(table, steps) is none %}
      {% do found.append([old | string, by_path[key]]) %}
    {% endif %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{% macro path_without_collections(names, last=none) %}
  {% set kept = [] %}
  {% for name in names if name not in ['element', 'value'] %}
    {% do kept.append(name | lower) %}
  {% endfor %}
  {% if last is not none %}
    {% do kept.append(last | lower) %}
  {% endif %}
  {% do return(sparkevolve.path_of(kept).text) %}
{% endmacro %}


{# The name that each field of a table is to get, by its id, whether or not it can get it. #}
{% macro new_names(table, renames) %}
  {% set found = {} %}
  {% for old, new in renames.items() %}
    {% set located = sparkevolve.locate(table, sparkevolve.rename_steps(old)) %}
    {% if located is not none %}
      {% do found.update({located.field.id: sparkevolve.unquote(new)}) %}
    {% endif %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# The steps of a path as a user wrote it; what is not in backticks may be a part of a name. #}
{% macro rename_steps(path) %}
  {% set levels = sparkevolve.dotted_levels(path | string) %}
  {% if levels %}
    {% do return(levels) %}
  {% endif %}
  {% set steps = [] %}
  {% for part in (path | string).split('.') %}
    {% do steps.append([part, false]) %}
  {% endfor %}
  {% do return(steps) %}
{% endmacro %}


{# Fields by folded name. #}
{% macro siblings(fields) %}
  {% set found = {} %}
  {% for field in fields %}
    {% do found.update({field.name | lower: field}) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# The field whose name some steps are together, if they can be one name. #}
{% macro among(siblings, steps) %}
  {% set texts = [] %}
  {% for step in steps %}
    {% if step[1] and steps | length > 1 %}
      {% do return(none) %}
    {% endif %}
    {% do texts.append(step[0]) %}
  {% endfor %}
  {% do return(siblings.get(texts | join('.') | lower)) %}
{% endmacro %}


{# Find a field of some fields by its dotted path, which leaves `element` and `value` out or has them. #}
{% macro locate(fields, steps) %}
  {% do return(sparkevolve.locate_in(sparkevolve.struct_type(fields), [], steps)) %}
{% endmacro %}


{% macro locate_in(type, names, rest) %}
  {% if type.kind == 'array' %}
    {% do return(sparkevolve.locate_inside(type.fields[0].type, names + ['element'], rest)) %}
  {% elif type.kind == 'map' %}
    {% do return(sparkevolve.locate_inside(type.fields[1].type, names + ['value'], rest)) %}
  {% elif type.kind != 'struct' %}
    {% do return(none) %}
  {% endif %}
  {% set siblings = sparkevolve.siblings(type.fields) %}
  {% set whole = sparkevolve.among(siblings, rest) %}
  {% if whole is not none %}
    {% do return({'names': names + [whole.name], 'siblings': siblings, 'field': whole}) %}
  {% endif %}
  {% for n in range(1, rest | length) %}
    {% set field = sparkevolve.among(siblings, rest[:n]) %}
    {% if field is not none %}
      {% set found = sparkevolve.locate_in(field.type, names + [field.name], rest[n:]) %}
      {% if found is not none %}
        {% do return(found) %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {% do return(none) %}
{% endmacro %}


{% macro locate_inside(type, names, rest) %}
  {# The struct in it may have a field of that name itself. #}
  {% if rest | length > 1 and rest[0][0] == names[-1] %}
    {% set found = sparkevolve.locate_in(type, names, rest[1:]) %}
    {% if found is not none %}
      {% do return(found) %}
    {% endif %}
  {% endif %}
  {% do return(sparkevolve.locate_in(type, names, rest)) %}
{% endmacro %}


{# The fields among which the last of some names would stand; none if there is no such place. #}
{% macro siblings_at(fields, names) %}
  {% set here = namespace(type=sparkevolve.struct_type(fields)) %}
  {% for name in names[:-1] if here.type is not none %}
    {% if here.type.kind == 'array' %}
      {% set here.type = here.type.fields[0].type %}
    {% elif here.type.kind == 'map' %}
      {% set here.type = here.type.fields[1].type %}
    {% elif here.type.kind == 'struct' %}
      {% set step = sparkevolve.siblings(here.type.fields).get(name | lower) %}
      {% set here.type = step.type if step is not none else none %}
    {% endif %}
  {% endfor %}
  {% if here.type is none or here.type.kind != 'struct' %}
    {% do return({}) %}
  {% endif %}
  {% do return(sparkevolve.siblings(here.type.fields)) %}
{% endmacro %}
