{# The dotted paths by which Iceberg finds the fields of a table, and which of them are still free.

   Iceberg finds each field by its full path and, inside a struct that is a list's element or a map's value, by a short
   one without that `element` or `value`. Spark looks up in any case. So no path may lead to two fields, but for a new
   short one, which may be hidden: by it nobody has ever found anything. #}


{# All paths of a table's fields. `partition_names` has, by the folded name of each partition field, the id of the only
   field whose path that may be; none if it repeats none. `leaving` are the ids of the fields whose names this run changes,
   all at once. #}
{% macro field_paths(fields, partition_names, leaving) %}
  {# What short paths have instead of a full path where they go on into it. #}
  {% set paths = {'held': {}, 'shortened': {'': []}, 'renames': 0, 'leaving': []} %}
  {% if leaving %}
    {% do sparkevolve.collect_leaving(fields, leaving, paths.leaving) %}
  {% endif %}
  {% for field in fields %}
    {% do sparkevolve.take_paths(paths, 'table', sparkevolve.no_path(), field, field.name) %}
  {% endfor %}
  {% for name, id in partition_names.items() %}
    {% set held = {'text': '', 'is_short': false, 'by': 'partition', 'id': id, 'renames': 0, 'names': [name]} %}
    {% do paths.held.update({name: paths.held.get(name, []) + [held]}) %}
  {% endfor %}
  {% do return(paths) %}
{% endmacro %}


{% macro collect_leaving(fields, leaving, found) %}
  {% for field in fields %}
    {% if field.id in leaving %}
      {% do found.extend(sparkevolve.ids_within(field)) %}
    {% endif %}
    {% do sparkevolve.collect_leaving(field.type.fields, leaving, found) %}
  {% endfor %}
{% endmacro %}


{# Take the paths of a field and of all in it; return what holds them. `own` are the ids of the field and of all in it:
   what these were called before they are renamed does not stand in the way. #}
{% macro take_paths(paths, by, parent, field, name, is_left_out=false, own=none) %}
  {% set ids = own if own else ([] if by == 'model' else sparkevolve.ids_within(field)) %}
  {% set full = sparkevolve.inside(parent, name) %}
  {% set short = paths.shortened[parent.text] + [name] %}
  {% do paths.shortened.update({full.text: short[:-1] if is_left_out else short}) %}
  {% set obstacles = sparkevolve.take_path(paths, by, full.names, false, field.id, full.names, ids) %}
  {% if short != full.names %}
    {% do obstacles.extend(sparkevolve.take_path(paths, by, short, true, field.id, full.names, ids)) %}
  {% endif %}
  {% for child in field.type.fields %}
    {# Short paths leave out the name of an element or a value that is a struct. #}
    {% set is_left_out = child.type.kind == 'struct' and field.type.kind != 'struct' and child.name != 'key' %}
    {% do obstacles.extend(sparkevolve.take_paths(paths, by, full, child, child.name, is_left_out, ids)) %}
  {% endfor %}
  {% do return(obstacles) %}
{% endmacro %}


{% macro take_path(paths, by, names, is_short, id, full, own) %}
  {% set text = names | join('.') %}
  {% set key = text | lower %}
  {% set there = paths.held.get(key, []) %}
  {% set obstacles = [] %}
  {% for other in there %}
    {% set same_side = (by == 'model') == (other.by == 'model') %}
    {# Iceberg prefers full paths, and readers may use the table's short ones: those must not be hidden, but for those
       that a rename of this run makes, which nobody has used. #}
    {% set is_hidden = text == other.text and (is_short or other.is_short) %}
    {% set is_harmless = is_hidden and not (other.is_short and other.by == 'table' and not other.renames) %}
    {% set is_beside = is_harmless or (same_side and id == other.id) %}
    {% set replaces = other.by == 'table' and other.id in own and other.renames < paths.renames %}
    {% if not is_beside and not replaces %}
      {# A path that is left is free for the same names, not the same text: as a text it would lead to the new field in the
         next run. #}
      {% set is_left = other.by == 'table' and not other.renames and other.id in paths.leaving %}
      {% do obstacles.append({
        'names': other.names, 'by': other.by,
        'stays': not is_left or full | map('lower') | list != other.names | map('lower') | list
      }) %}
    {% endif %}
  {% endfor %}
  {% set held = {
    'text': text, 'is_short': is_short, 'by': by, 'id': id, 'renames': paths.renames, 'names': full
  } %}
  {% do paths.held.update({key: there + [held]}) %}
  {% do return(obstacles) %}
{% endmacro %}


{# The ids of a field and of all in it. #}
{% macro ids_within(field) %}
  {% set ids = [field.id] %}
  {% for child in field.type.fields %}
    {% do ids.extend(sparkevolve.ids_within(child)) %}
  {% endfor %}
  {% do return(ids) %}
{% endmacro %}


{# The obstacle to name: a field before a partition field, which may have its name from it. #}
{% macro first_obstacle(obstacles) %}
  {% set fields = obstacles | rejectattr('by', 'equalto', 'partition') | list %}
  {% do return((fields or obstacles) | sort(attribute='names') | first) %}
{% endmacro %}


{% macro holder_text(by) %}
  {% do return({
    'table': 'the table has the field',
    'model': 'the model returns the new field',
    'partition': 'a partition spec of the table has, or once had, the field'
  }[by]) %}
{% endmacro %}
