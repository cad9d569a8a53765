{# Which fields of a table a model's `column_renames` are about, and whether they can be renamed. #}


{# What a field is called while only the case of its name is changed, see `rename_statements`. It is told from a name that a
   user has given by its end. #}
{% macro name_between(name) %}
  {% do return(name ~ '__sparkevolve_rename_' ~ local_md5(name | lower)[:8]) %}
{% endmacro %}


{# The fields that have such a name, since a run has ended between two statements: the `path` of each, inner ones first, what
   it was called before (`old`), and whether another field beside it `is_taken` for that by now. #}
{% macro renames_begun(fields, parent=none) %}
  {% set parent, names, found = parent or sparkevolve.no_path(), fields | map(attribute='name') | map('lower') | list, [] %}
  {% for field in fields %}
    {% set path = sparkevolve.inside(parent, field.name) %}
    {# Spark changes nothing in the key of a map. #}
    {% do found.extend(sparkevolve.renames_begun(
      field.type.fields[1:] if field.type.kind == 'map' else field.type.fields, path
    )) %}
    {% set old = field.name.split('__sparkevolve_rename_')[:-1] | join('__sparkevolve_rename_') %}
    {% if old and sparkevolve.name_between(old) == field.name %}
      {% do found.append({'path': path, 'old': old, 'is_taken': old | lower in names}) %}
    {% endif %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# How such fields get back what they were called before, each as the `text` of a change and the statement (`sql`). #}
{% macro ends_of_renames(table) %}
  {% set found = [] %}
  {% for begun in sparkevolve.renames_begun(table.fields) if not begun.is_taken %}
    {% do found.append({
      'verb': 'renamed', 'text': 'rename ' ~ begun.path.text ~ ' to ' ~ sparkevolve.quote(begun.old),
      'sql': 'ALTER TABLE ' ~ table.relation ~ ' RENAME COLUMN ' ~ begun.path.text ~ ' TO ' ~ sparkevolve.quote(begun.old)
    }) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# Give them that back, so that all goes on as if that run had not begun: a model that reads its table would not find them.
   Returns what was changed, as text. #}
{% macro end_renames(table) %}
  {% set changes = sparkevolve.ends_of_renames(table) %}
  {% set texts = changes | map(attribute='text') | list %}
  {% if texts and sparkevolve.freezes_schema() %}
    {% do sparkevolve.refuse(table.relation, [sparkevolve.refuse_frozen_schema(model.unique_id, texts)]) %}
  {% endif %}
  {% for change in changes %}
    {% do sparkevolve.run_statement(change.sql, 'evolve') %}
    {% do log(
      table.relation ~ ': ' ~ change.text ~ ', since a run has ended while it changed the case of that name', info=True
    ) %}
  {% endfor %}
  {% do return(texts) %}
{% endmacro %}


{# The same before the pre-hooks, which may read such a column by the name that it had. #}
{% macro end_renames_before_hooks(target) %}
  {% set existing = load_relation(this) %}
  {% if existing is none or existing.type != 'table' or not sparkevolve.is_iceberg_table(existing) %}
    {% do return([]) %}
  {% endif %}
  {% for row in sparkevolve.rows('describe query select * from ' ~ target) if '__sparkevolve_rename_' in row[0] ~ row[1] %}
    {% do return(sparkevolve.end_renames(sparkevolve.read_table(target))) %}
  {% endfor %}
  {% do return([]) %}
{% endmacro %}


{# The fields of a table as they are called once that is done. #}
{% macro as_before(fields) %}
  {% set names, found = fields | map(attribute='name') | map('lower') | list, [] %}
  {% for field in fields %}
    {% set old = field.name.split('__sparkevolve_rename_')[:-1] | join('__sparkevolve_rename_') %}
    {% set is_begun = old and sparkevolve.name_between(old) == field.name and old | lower not in names %}
    {# Spark changes nothing in the key of a map. #}
    {% set kept = field.type.fields[:1] if field.type.kind == 'map' else [] %}
    {% set inside = kept + sparkevolve.as_before(field.type.fields[kept | length:]) if field.type.fields else [] %}
    {% do found.append(dict(
      field, name=old if is_begun else field.name, type=dict(field.type, fields=inside) if inside else field.type
    )) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# What to say of fields of which another one has the name by now. #}
{% macro begun_warnings(fields) %}
  {% set found = [] %}
  {% for begun in sparkevolve.renames_begun(fields) if begun.is_taken %}
    {% do found.append(
      'the table has ' ~ begun.path.text ~ ', as ' ~ sparkevolve.quote(begun.old) ~ ' was called while a run changed the case '
      ~ 'of that name, and ended before it had, and somebody has added another ' ~ sparkevolve.quote(begun.old) ~ ' since. '
      ~ 'Bring the values of the one into the other with UPDATE where they are missing, and drop it with ALTER TABLE.'
    ) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# Return the new name by field id, `found`, and the `refusals` of renames that cannot be made. A key is a column's name,
   or the dotted path of a nested field; a name that has dots itself is taken for a column first, and in backticks it is
   one name. A rename that was made in an earlier run has nothing to do.

   A model may go on returning the old name if what it returns cannot be stored there: then that is a new column, and the
   old one is retired under the new name. Which names a field had before is not known here: it may have had any. #}
{% macro resolve_renames(table, batch, renames, widens) %}
  {% set run = {'wanted': {}, 'arrivals': [], 'widens': widens} %}
  {% set refusals, places, renamed, new_of = [], {}, {}, {} %}
  {% for old_path, new_name in renames.items() %}
    {% set name = sparkevolve.unquote(new_name) %}
    {% set steps = sparkevolve.rename_steps(old_path) %}
    {% set located = sparkevolve.locate(table, steps) %}
    {% do run.arrivals.append([steps | map(attribute=0) | map('lower') | list, name | lower]) %}
    {% if located is not none and located.field.name != name %}
      {% set path, old = sparkevolve.path_of(located.names), located.field %}
      {% set place = sparkevolve.path_of(located.names[:-1] + [name | lower]).text %}
      {% set other = places[place] if place in places else renamed.get(old.id) %}
      {% if other is not none %}
        {% do refusals.append(sparkevolve.refuse_rename_twice(path, name, other[0], other[1])) %}
      {% else %}
        {% do places.update({place: [path, name]}) %}
        {% do renamed.update({old.id: [path, name]}) %}
        {% do new_of.update({path.text: name}) %}
        {% set taken = located.siblings.get(name | lower, old) %}
        {% do run.wanted.update({old.id: {
          'path': path, 'old': old, 'name': name, 'taken': none if taken.id == old.id else taken, 'returned': none,
          'returns_new': false, 'returns_here': false, 'siblings': located.siblings, 'beside': [], 'after': []
        }}) %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {% for rename in run.wanted.values() %}
    {# What is returned under a name that another field gets is for that one. #}
    {% set here = sparkevolve.path_of(rename.path.names[:-1] + [rename.old.name | lower]).text %}
    {% if here not in places %}
      {% do rename.update({'returned': sparkevolve.returned_as(batch, rename, rename.old.name, new_of)}) %}
    {% endif %}
    {% set returned_here = sparkevolve.siblings_at(batch, rename.path.names).values() | map(attribute='name') | list %}
    {% do rename.update({
      'returns_new': sparkevolve.returned_as(batch, rename, rename.name, new_of) is not none,
      'returns_here': rename.name in returned_here,
      'after': sparkevolve.parents_after(rename.path, new_of)
    }) %}
    {% for parent in [rename.after, rename.path.names[:-1]] %}
      {% do rename.beside.extend(sparkevolve.siblings_at(batch, parent + [rename.name])) %}
    {% endfor %}
  {% endfor %}
  {% set found = {} %}
  {% for id, rename in run.wanted.items() %}
    {% set outcome = sparkevolve.rename_outcome(run, id) %}
    {% if outcome is string %}
      {# One that waits for another has the reason of that. #}
      {% do refusals.append(outcome) if outcome not in refusals %}
    {% elif outcome %}
      {% do found.update({id: rename.name}) %}
    {% endif %}
  {% endfor %}
  {% do return({'found': found, 'refusals': refusals}) %}
{% endmacro %}


{# What a model returns under a name beside the field, whatever the struct around it is called; none if it does not, or if
   the two names of the rename differ by case only. #}
{% macro returned_as(batch, rename, name, new_of) %}
  {% if rename.old.name | lower == rename.name | lower %}
    {% do return(none) %}
  {% endif %}
  {% for parent in [sparkevolve.parents_after(rename.path, new_of), rename.path.names[:-1]] %}
    {% set siblings = sparkevolve.siblings_at(batch, parent + [name]) %}
    {% if siblings %}
      {% do return(siblings.get(name | lower)) %}
    {% endif %}
  {% endfor %}
  {% do return(none) %}
{% endmacro %}


{# What a field is in, once that is renamed. #}
{% macro parents_after(path, new_of) %}
  {% set before, after = path.names[:-1], [] %}
  {% for level in before %}
    {% do after.append(new_of.get(sparkevolve.path_of(before[:loop.index]).text, level)) %}
  {% endfor %}
  {% do return(after) %}
{% endmacro %}


{# Whether a rename is to be made, false if it was made before; or why it cannot be. Renames of one run are made all at
   once, so one may make room for another. #}
{% macro rename_outcome(run, id) %}
  {% set rename = run.wanted[id] %}
  {% set replaces = rename.returned is not none
    and not sparkevolve.can_take(rename.old.type, rename.returned.type, run.widens) %}
  {% set circle = sparkevolve.rename_circle(run, id) %}
  {% if circle %}
    {% do return(sparkevolve.refused_circle(run, circle)) %}
  {% elif sparkevolve.was_made_inside(run, rename) %}
    {% do return(false) %}
  {% endif %}
  {# Whether the field that has the name leaves it. #}
  {% set is_moved = rename.taken is not none and rename.taken.id in run.wanted %}
  {% set makes_way = is_moved and sparkevolve.rename_outcome(run, rename.taken.id) %}
  {% if makes_way is string %}
    {% do return(makes_way) %}
  {% elif rename.taken is none or makes_way %}
    {% if rename.returned is none or replaces %}
      {% do return(true) %}
    {% elif rename.taken is not none %}
      {% do return(false) %}
    {% endif %}
    {% do return(sparkevolve.refuse_rename_old_returned(rename.path, rename.name)) %}
  {% elif rename.returned is not none or not rename.returns_new or sparkevolve.was_moved_here(run, rename) %}
    {# Without either name there is nothing to be mistaken about: both are padded. #}
    {% do return(false) %}
  {% endif %}
  {% do return(sparkevolve.refuse_rename_both_exist(rename.path, rename.name)) %}
{% endmacro %}


{# Whether a rename was made in a struct that was renamed with it, and another has that one's name now. A path begins with
   what the struct was called before both. #}
{% macro was_made_inside(run, rename) %}
  {% if rename.returns_here and rename.taken is none %}
    {% do return(false) %}
  {% endif %}
  {% set names = rename.path.names %}
  {% for id, above in run.wanted.items() %}
    {% set depth = above.path.names | length %}
    {% if depth < names | length and above.path.names == names[:depth] and above.taken is not none %}
      {% set beside = sparkevolve.siblings_at([above.taken], [above.taken.name] + names[depth:]) %}
      {% if beside and beside.get(rename.name | lower, rename.old).name == rename.name %}
        {% set outcome = sparkevolve.rename_outcome(run, id) %}
        {% if outcome is not string and not outcome %}
          {% do return(true) %}
        {% endif %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {% do return(false) %}
{% endmacro %}


{# The fields of which each is to get the name of the next, and the last that of the first: none of these can begin. Empty if
   this one is in no such circle. #}
{% macro rename_circle(run, id) %}
  {% set found = [id] %}
  {% for _ in run.wanted %}
    {% set taken = run.wanted[found[-1]].taken %}
    {% if taken is none or taken.id not in run.wanted %}
      {% do return([]) %}
    {% elif taken.id in found %}
      {% do return(found if taken.id == id else []) %}
    {% endif %}
    {% do found.append(taken.id) %}
  {% endfor %}
{% endmacro %}


{# The refusal of a circle, the same for each of its fields. #}
{% macro refused_circle(run, circle) %}
  {% set begin = circle.index((run.wanted | select('in', circle) | list)[0]) %}
  {% set renames = [] %}
  {% for id in circle[begin:] + circle[:begin] %}
    {% do renames.append(run.wanted[id]) %}
  {% endfor %}
  {% set first = renames[0] %}
  {% set aside = sparkevolve.free_name(first.name ~ '_new', first.siblings.keys() | list + first.beside) %}
  {% do return(sparkevolve.refuse_rename_circle(renames, aside, first.after)) %}
{% endmacro %}


{# Whether a field may have its name from another rename of the same configuration. #}
{% macro was_moved_here(run, rename) %}
  {% set parent = sparkevolve.path_without_collections(rename.path.names[:-1] | map('lower') | list) %}
  {% for old, new in run.arrivals %}
    {% if new == rename.old.name | lower and sparkevolve.path_without_collections(old[:-1]) == parent %}
      {% do return(true) %}
    {% endif %}
  {% endfor %}
  {% do return(false) %}
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
  {% for name in names[:-1] %}
    {% if here.type is not none %}
      {% if here.type.kind == 'array' %}
        {% set here.type = here.type.fields[0].type %}
      {% elif here.type.kind == 'map' %}
        {% set here.type = here.type.fields[1].type %}
      {% elif here.type.kind == 'struct' %}
        {% set step = sparkevolve.siblings(here.type.fields).get(name | lower) %}
        {% set here.type = step.type if step is not none else none %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {% if here.type is none or here.type.kind != 'struct' %}
    {% do return({}) %}
  {% endif %}
  {% do return(sparkevolve.siblings(here.type.fields)) %}
{% endmacro %}
