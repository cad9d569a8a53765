{# The one place that decides what happens to a table whose model returns other columns than it holds. It is the
   adapter's `evolution/plan.py` again, and a test holds the two equal.

   A policy is a mapping of what the model's configuration and the table's state allow: `add_columns`, `type_widening`,
   `relax_not_null`, `nested_evolution`, `unique_key` with its `key_setting`, `conditions` (what else finds rows, see
   `conditions_of`), `renames`, `docs` by folded name (none for those that are not stored), `columns_without_null` (folded
   names), `frozen` (the settings that are off only since `on_schema_change` is `fail`), `identifiers` and
   `partition_sources` (ids of fields), `partition_names`, `replaces_all_rows` (no row of the table has to be found),
   `overwrites_partitions`. #}


{% macro plan_evolution(table, batch, policy) %}
  {% set refusals = sparkevolve.check_names(table, batch, policy) %}
  {% if refusals %}
    {# The rest looks names up by their folded form, which is safe only once they are known to be unique. #}
    {% do return(sparkevolve.refused_plan(refusals)) %}
  {% endif %}
  {% set renames = sparkevolve.resolve_renames(table, batch, policy.renames, policy.type_widening) %}
  {% if renames.refusals %}
    {% do return(sparkevolve.refused_plan(renames.refusals)) %}
  {% endif %}
  {% set planner = {
    'policy': policy, 'renames': renames.found, 'table': table, 'batch': batch,
    'paths': sparkevolve.field_paths(table, policy.partition_names, renames.found.keys() | list),
    'changes': [], 'removed': [], 'padded_inside': [], 'ignored': [], 'warnings': [], 'refusals': [],
    'collections': 0
  } %}
  {% set columns = sparkevolve.plan_members(planner, sparkevolve.no_path(), sparkevolve.no_path(), table, batch) %}
  {% set added = planner.changes | selectattr('verb', 'equalto', 'added') | map(attribute='path') | list %}
  {% for old, path in sparkevolve.renames_not_found(table, policy.renames, added) %}
    {% do planner.warnings.append(
      '`column_renames` wants ' ~ old ~ ' to become ' ~ sparkevolve.quote(path.names[-1]) ~ ', and the table has no '
      ~ old ~ ': ' ~ path.text ~ ' is added as a new column, without the values of another.'
    ) %}
  {% endfor %}
  {% set spelling = {} %}
  {% for column in columns %}
    {% do spelling.update({column.name | lower: column.name}) %}
  {% endfor %}
  {% set keys = policy.unique_key | map('lower') | list %}
  {% set missing = [] %}
  {% for key in policy.unique_key if key | lower not in spelling %}
    {% do missing.append(key) %}
  {% endfor %}
  {% if missing %}
    {% do planner.refusals.append(sparkevolve.refuse_key_not_in_table(missing, policy.key_setting)) %}
  {% endif %}
  {% for field in batch if field.name | lower in keys %}
    {% if sparkevolve.has_map(field.type) or sparkevolve.has_variant(field.type) %}
      {% do planner.refusals.append(sparkevolve.refuse_key_not_comparable(
        sparkevolve.path_of([field.name]), field.type, policy.key_setting
      )) %}
    {% endif %}
  {% endfor %}
  {% if planner.refusals %}
    {% do return(sparkevolve.refused_plan(planner.refusals)) %}
  {% endif %}
  {% set unique_key = [] %}
  {% for key in keys %}
    {% do unique_key.append(spelling[key]) %}
  {% endfor %}
  {% do return({
    'changes': planner.changes, 'columns': columns, 'unique_key': unique_key, 'removed': planner.removed,
    'padded_inside': planner.padded_inside, 'ignored': planner.ignored, 'warnings': planner.warnings, 'refusals': []
  }) %}
{% endmacro %}


{# A plan with refusals holds no changes and no columns. #}
{% macro refused_plan(refusals) %}
  {% do return({
    'changes': [], 'columns': [], 'unique_key': [], 'removed': [], 'padded_inside': [], 'ignored': [], 'warnings': [],
    'refusals': refusals
  }) %}
{% endmacro %}


{# What is wrong with the names that a model returns, whatever its table looks like. #}
{% macro check_source_names(names, unique_key=[], key_setting='unique_key') %}
  {% if not names %}
    {% do return([sparkevolve.refuse_no_columns()]) %}
  {% endif %}
  {% set refusals = [] %}
  {% for group in sparkevolve.collisions(names) %}
    {% do refusals.append(sparkevolve.refuse_ambiguous('The model returns', group)) %}
  {% endfor %}
  {% for name in names if name == '' %}
    {% do refusals.append(sparkevolve.refuse_empty_name(sparkevolve.path_of([name]))) %}
  {% endfor %}
  {% set reserved = sparkevolve.reserved_names() %}
  {% for name in names if name | lower in reserved %}
    {% do refusals.append(sparkevolve.refuse_reserved(name)) %}
  {% endfor %}
  {% set returned = names | map('lower') | list %}
  {% set missing = [] %}
  {% for key in unique_key if key | lower not in returned %}
    {% do missing.append(key) %}
  {% endfor %}
  {% if missing %}
    {% do refusals.append(sparkevolve.refuse_key_not_produced(missing, names, key_setting)) %}
  {% endif %}
  {% do return(refusals) %}
{% endmacro %}


{% macro check_names(table, batch, policy) %}
  {% set refusals = sparkevolve.ambiguous_names('The table has', sparkevolve.no_path(), table, false) %}
  {# Top-level names of the batch are checked below, together with what else can be wrong there. #}
  {% do refusals.extend(sparkevolve.ambiguous_names('The model returns', sparkevolve.no_path(), batch, true)) %}
  {% set names = batch | map(attribute='name') | list %}
  {% do refusals.extend(sparkevolve.check_source_names(names, policy.unique_key, policy.key_setting)) %}
  {% do return(refusals) %}
{% endmacro %}


{# Refuse names in a struct, or of columns, that Spark does not keep apart; outer ones first. #}
{% macro ambiguous_names(where, path, fields, are_passed_over) %}
  {% set refusals = [] %}
  {% if not are_passed_over %}
    {% set place = where ~ ', in ' ~ path.text ~ ',' if path.names else where %}
    {% for group in sparkevolve.collisions(fields | map(attribute='name') | list) %}
      {% do refusals.append(sparkevolve.refuse_ambiguous(place, group)) %}
    {% endfor %}
  {% endif %}
  {% for field in fields if field.type.fields %}
    {% do refusals.extend(sparkevolve.ambiguous_names(
      where, sparkevolve.inside(path, field.name), field.type.fields, field.type.kind != 'struct'
    )) %}
  {% endfor %}
  {% do return(refusals) %}
{% endmacro %}


{# Plan the fields of a struct or the columns of the table: old ones in place, then new ones. `renamed` is the path after
   the renames of this run. #}
{% macro plan_members(planner, parent, renamed, old_fields, new_fields) %}
  {% set policy = planner.policy %}
  {% set returned = sparkevolve.siblings(new_fields) %}
  {% set known, replaced = {}, {} %}
  {% set members = [] %}
  {% for old in old_fields %}
    {% set path = sparkevolve.inside(parent, old.name) %}
    {% set name = planner.renames.get(old.id, old.name) %}
    {% if name != old.name %}
      {% do sparkevolve.plan_rename(planner, path, renamed, old, name) %}
      {% do replaced.update({old.name | lower: [old, name]}) %}
    {% endif %}
    {% do known.update({name | lower: true}) %}
    {% set new = returned.get(name | lower) %}
    {% set after = path if name == old.name and parent.text == renamed.text else sparkevolve.inside(renamed, name) %}
    {% if new is none %}
      {% set projection = sparkevolve.plan_pad(planner, path, after, old) %}
    {% else %}
      {% set projection = sparkevolve.plan_align(planner, path, after, old, new) %}
    {% endif %}
    {% do members.append({
      'name': name, 'source': new.name if new is not none else none, 'projection': projection
    }) %}
    {% if not parent.names and policy.docs is not none %}
      {% set doc = policy.docs.get(name | lower) %}
      {% if doc is not none and doc != (old.doc or '') %}
        {% do planner.changes.append({
          'verb': 'described', 'path': path, 'after': after, 'doc': doc,
          'text': 'describe ' ~ path.text ~ ' as ' ~ sparkevolve.constant_literal(doc)
        }) %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {% for new in new_fields if new.name | lower not in known %}
    {% if new.name | lower in replaced %}
      {% set retired = replaced[new.name | lower] %}
      {% do sparkevolve.plan_replace(planner, parent, renamed, retired[0], retired[1], new) %}
      {% do members.append({'name': new.name, 'source': new.name, 'projection': {'kind': 'keep'}}) %}
    {% elif not policy.add_columns %}
      {% do planner.ignored.append(sparkevolve.inside(parent, new.name)) %}
    {% else %}
      {% do sparkevolve.plan_add(planner, parent, renamed, new) %}
      {% do members.append({'name': new.name, 'source': new.name, 'projection': {'kind': 'keep'}}) %}
    {% endif %}
  {% endfor %}
  {# Names that the table would have after all renames and additions, and could not live with. #}
  {% set names = members | map(attribute='name') | list %}
  {% set where = "With the model's, the table would have" ~ (', in ' ~ parent.text ~ ',' if parent.names else '') %}
  {% for group in sparkevolve.collisions(names) %}
    {% do planner.refusals.append(sparkevolve.refuse_ambiguous(where, group)) %}
  {% endfor %}
  {% if not parent.names and planner.renames %}
    {% set new_names = planner.renames.values() | list %}
    {% set reserved = sparkevolve.reserved_names() %}
    {% for name in names if name in new_names and name | lower in reserved %}
      {% do planner.refusals.append(sparkevolve.refuse_reserved(name)) %}
    {% endfor %}
  {% endif %}
  {% do return(members) %}
{% endmacro %}


{% macro plan_add(planner, parent, renamed, new) %}
  {% set path = sparkevolve.inside(parent, new.name) %}
  {# Both the path before the renames and the one after them have to be free. #}
  {% set obstacles = sparkevolve.take_paths(planner.paths, 'model', parent, new, new.name) %}
  {% if parent.text != renamed.text %}
    {% do obstacles.extend(sparkevolve.take_paths(planner.paths, 'model', renamed, new, new.name)) %}
  {% endif %}
  {% if obstacles %}
    {% do planner.refusals.append(sparkevolve.refuse_path_taken(path, obstacles)) %}
  {% else %}
    {% do sparkevolve.plan_addition(planner, path, renamed, new) %}
  {% endif %}
{% endmacro %}


{# Plan a new field under the name that an old one of another type leaves to it. #}
{% macro plan_replace(planner, parent, renamed, old, old_name, new) %}
  {% set policy, path = planner.policy, sparkevolve.inside(parent, new.name) %}
  {% set is_key = path.names[0] | lower in policy.unique_key | map('lower') | list %}
  {% set condition = sparkevolve.needing_condition(planner, parent, new.name, old_name) %}
  {% set in_partitions = sparkevolve.ids_within(old) | select('in', policy.partition_sources) | list %}
  {# Paths are free that fields had before they were renamed. #}
  {% set obstacles = [] %}
  {% for obstacle in sparkevolve.take_paths(planner.paths, 'model', renamed, new, new.name) %}
    {% if obstacle.by != 'table' or obstacle.stays %}
      {% do obstacles.append(obstacle) %}
    {% endif %}
  {% endfor %}
  {% if not policy.add_columns %}
    {% do planner.refusals.append(sparkevolve.refuse_replaced_not_added(path, old_name, old.type, new.type)) %}
  {% elif is_key and not policy.replaces_all_rows %}
    {% do planner.refusals.append(
      sparkevolve.refuse_replaced_key(path, old_name, old.type, new.type, policy.key_setting)
    ) %}
  {% elif condition is not none and not policy.replaces_all_rows %}
    {% do planner.refusals.append(
      sparkevolve.refuse_replaced_condition(path, old_name, old.type, new.type, condition.text, condition.is_inside)
    ) %}
  {% elif policy.overwrites_partitions and in_partitions %}
    {% do planner.refusals.append(sparkevolve.refuse_replaced_partition(path, old_name, old.type, new.type)) %}
  {% elif obstacles %}
    {% do planner.refusals.append(sparkevolve.refuse_path_taken(path, obstacles)) %}
  {% else %}
    {% do sparkevolve.plan_addition(planner, path, renamed, new) %}
  {% endif %}
{% endmacro %}


{% macro plan_addition(planner, path, renamed, new) %}
  {% set is_field = path.names | length > 1 %}
  {% set docs = planner.policy.docs if planner.policy.docs is not none else {} %}
  {% do planner.changes.append({
    'verb': 'added', 'path': path, 'after': sparkevolve.inside(renamed, new.name), 'type': new.type,
    'doc': none if is_field else docs.get(new.name | lower),
    'text': 'add ' ~ ('field ' if is_field else 'column ') ~ path.text ~ ' ' ~ sparkevolve.type_text(new.type)
  }) %}
{% endmacro %}


{% macro plan_rename(planner, path, renamed, old, name) %}
  {% do planner.changes.append({
    'verb': 'renamed', 'path': path, 'parent': renamed, 'new_name': name, 'text': 'rename ' ~ path.text ~ ' to ' ~ sparkevolve.quote(name)
  }) %}
  {% do planner.paths.update({'renames': planner.paths.renames + 1}) %}
  {% set obstacles = sparkevolve.take_paths(planner.paths, 'table', renamed, old, name) | selectattr('stays') | list %}
  {% if obstacles %}
    {% do planner.refusals.append(sparkevolve.refuse_rename_path_taken(path, name, obstacles)) %}
  {% endif %}
{% endmacro %}


{# Plan a column or field that the model does not return. #}
{% macro plan_pad(planner, path, renamed, old) %}
  {% do planner.removed.append(path) %}
  {% if planner.collections %}
    {% do planner.padded_inside.append(path) %}
  {% endif %}
  {% do sparkevolve.plan_leave_partition(planner, path, old) %}
  {% if old.required %}
    {% do sparkevolve.plan_relax(planner, path, renamed, old, true) %}
  {% endif %}
  {% do return({'kind': 'pad', 'type': sparkevolve.spark_type(old.type)}) %}
{% endmacro %}


{# Warn of, or refuse, that all rows have NULL in what the table is partitioned by. #}
{% macro plan_leave_partition(planner, path, old) %}
  {% if old.id in planner.policy.partition_sources %}
    {% if planner.policy.overwrites_partitions %}
      {% do planner.refusals.append(sparkevolve.refuse_removed_partition(path)) %}
    {% else %}
      {% do planner.warnings.append(
        'The table is partitioned by ' ~ path.text ~ ', which the model no longer returns: the rows of this run go to '
        ~ 'the partition NULL.'
      ) %}
    {% endif %}
  {% endif %}
  {% for child in old.type.fields %}
    {% do sparkevolve.plan_leave_partition(planner, sparkevolve.inside(path, child.name), child) %}
  {% endfor %}
{% endmacro %}


{% macro plan_relax(planner, path, renamed, old, is_removed) %}
  {% set identifier = sparkevolve.identifier_in(planner.policy.identifiers, path, old) %}
  {% if identifier is not none %}
    {% do planner.refusals.append(sparkevolve.refuse_identifier_field(identifier)) %}
  {% elif planner.policy.relax_not_null %}
    {% do planner.changes.append({
      'verb': 'relaxed', 'path': path, 'after': renamed, 'text': 'let ' ~ path.text ~ ' be NULL'
    }) %}
  {% else %}
    {% set switch = sparkevolve.switch('relax_not_null', planner.policy.frozen) %}
    {% do planner.refusals.append(
      sparkevolve.refuse_removed_not_null(path, switch) if is_removed
      else sparkevolve.refuse_null_in_not_null(path, switch)
    ) %}
  {% endif %}
{% endmacro %}


{# The path of the identifier field that a field is, or has in it: then it is required. #}
{% macro identifier_in(identifiers, path, field) %}
  {% if not identifiers %}
    {% do return(none) %}
  {% elif field.id in identifiers %}
    {% do return(path) %}
  {% endif %}
  {% for child in field.type.fields %}
    {% set found = sparkevolve.identifier_in(identifiers, sparkevolve.inside(path, child.name), child) %}
    {% if found is not none %}
      {% do return(found) %}
    {% endif %}
  {% endfor %}
  {% do return(none) %}
{% endmacro %}


{# Plan a column or field that both sides have. #}
{% macro plan_align(planner, path, renamed, old, new) %}
  {% if old.required
        and (path.names | length > 1 or new.name | lower not in planner.policy.columns_without_null) %}
    {% do sparkevolve.plan_relax(planner, path, renamed, old, false) %}
  {% endif %}
  {% do return(sparkevolve.plan_value(planner, path, renamed, old.type, new.type)) %}
{% endmacro %}


{# Plan how a value of the type `new` gets into a place of the type `old`. #}
{% macro plan_value(planner, path, renamed, old, new) %}
  {% if sparkevolve.is_same(new, old) and not sparkevolve.needs_descent(planner.renames, old) %}
    {% do return({'kind': 'keep'}) %}
  {% elif old.kind != 'leaf' and old.kind == new.kind %}
    {% do return(sparkevolve.plan_nested(planner, path, renamed, old, new)) %}
  {% elif sparkevolve.is_safe_upcast(new, old) %}
    {% do return({'kind': 'cast', 'type': sparkevolve.spark_type(old)}) %}
  {% endif %}
  {% if not sparkevolve.is_widening(old, new) %}
    {% set is_key = path.names[0] | lower in planner.policy.unique_key | map('lower') | list %}
    {% do planner.refusals.append(sparkevolve.refuse_type_differs(
      path, old, new, '', planner.policy.key_setting if is_key else '',
      '' if is_key else sparkevolve.move_setting(planner, path)
    )) %}
  {% elif planner.policy.type_widening %}
    {% do planner.changes.append({
      'verb': 'widened', 'path': path, 'after': renamed, 'type': new,
      'text': 'widen ' ~ path.text ~ ' from ' ~ sparkevolve.type_text(old) ~ ' to ' ~ sparkevolve.type_text(new)
    }) %}
  {% else %}
    {% do planner.refusals.append(sparkevolve.refuse_widening_off(
      path, old, new, sparkevolve.switch('type_widening', planner.policy.frozen)
    )) %}
  {% endif %}
  {% do return({'kind': 'keep'}) %}
{% endmacro %}


{# The setting that retires a field and gives its name to the new type; empty for what the table is partitioned by, whose
   name no other one can have, and for what conditions need by which rows are found. #}
{% macro move_setting(planner, path) %}
  {# What is in a list or a map directly has no name of its own. #}
  {% set at, levels = namespace(length=1, type=sparkevolve.struct_type(planner.table)), [] %}
  {% for name in path.names %}
    {% set field = at.type.fields | selectattr('name', 'equalto', name) | first %}
    {% if at.type.kind == 'struct' %}
      {% do levels.append(name | lower) %}
      {% set at.length = loop.index %}
      {% set at.ids = sparkevolve.ids_within(field) %}
    {% endif %}
    {% set at.type = field.type %}
  {% endfor %}
  {% set names = path.names[:at.length] %}
  {% set policy = planner.policy %}
  {% if at.ids | select('in', policy.partition_sources) | list or names | join('.') | lower in policy.partition_names %}
    {% do return('') %}
  {% endif %}
  {% if sparkevolve.needing_condition(planner, sparkevolve.path_of(names[:-1]), names[-1], '') is not none %}
    {% do return('') %}
  {% endif %}
  {% set beside = sparkevolve.siblings_at(planner.table, names).values() | map(attribute='name') | list %}
  {% set at_path = sparkevolve.config_path(names) ~ ': ' %}
  {# What the model returns under such a name would be taken for the values of the old column. #}
  {% set taken = beside + (sparkevolve.siblings_at(planner.batch, names).values() | map(attribute='name') | list) %}
  {% set setting = '`column_renames: {' ~ at_path
    ~ sparkevolve.config_name(sparkevolve.free_name(names[-1] ~ '_old', taken)) ~ '}`' %}
  {# What gave another name to an earlier field of this path has been done. #}
  {% set others = beside | map('lower') | reject('equalto', names[-1] | lower) | list %}
  {% for old, new in planner.policy.renames.items() %}
    {% set steps = sparkevolve.rename_steps(old) | map(attribute=0) | map('lower') | list %}
    {% set name = sparkevolve.unquote(new) %}
    {% if steps in [levels, names | map('lower') | list] and name | lower in others %}
      {% do return(
        setting ~ ' in the place of `' ~ at_path ~ sparkevolve.config_name(name) ~ '`, which was done before'
      ) %}
    {% endif %}
  {% endfor %}
  {% do return(setting) %}
{% endmacro %}


{# Plan inside a struct, list or map, and take that back if nested evolution is off and was needed. #}
{% macro plan_nested(planner, path, renamed, old, new) %}
  {% set findings = ['changes', 'removed', 'padded_inside', 'ignored', 'refusals'] %}
  {% set marks = {} %}
  {% for finding in findings %}
    {% do marks.update({finding: planner[finding] | length}) %}
  {% endfor %}
  {% if old.kind == 'struct' %}
    {% set projection = sparkevolve.plan_struct(planner, path, renamed, old, new) %}
  {% else %}
    {% set projection = sparkevolve.plan_collection(planner, path, renamed, old, new) %}
  {% endif %}
  {% if not planner.policy.nested_evolution %}
    {% set needed = namespace(any=false) %}
    {% for finding in findings %}
      {% if planner[finding] | length > marks[finding] %}
        {% set needed.any = true %}
        {% do planner.update({finding: planner[finding][:marks[finding]]}) %}
      {% endif %}
    {% endfor %}
    {% if needed.any %}
      {% do planner.refusals.append(sparkevolve.refuse_nested_off(
        path, old, new, sparkevolve.switch('nested_evolution', planner.policy.frozen)
      )) %}
    {% endif %}
  {% endif %}
  {% do return(projection) %}
{% endmacro %}


{% macro plan_struct(planner, path, renamed, old, new) %}
  {% set members = sparkevolve.plan_members(planner, path, renamed, old.fields, new.fields) %}
  {% if members | length == new.fields | length %}
    {% set in_place = namespace(all=true) %}
    {% for member in members %}
      {% if member.source != new.fields[loop.index0].name or member.projection.kind != 'keep' %}
        {% set in_place.all = false %}
      {% endif %}
    {% endfor %}
    {% if in_place.all %}
      {% do return({'kind': 'keep'}) %}
    {% endif %}
  {% endif %}
  {% do return({'kind': 'struct', 'members': members}) %}
{% endmacro %}


{# Plan the element of a list, or the value of a map. #}
{% macro plan_collection(planner, path, renamed, old, new) %}
  {% if old.kind == 'map' and not sparkevolve.is_same(new.fields[0].type, old.fields[0].type) %}
    {% do planner.refusals.append(sparkevolve.refuse_map_key_differs(
      path, old, new, sparkevolve.move_setting(planner, path)
    )) %}
  {% endif %}
  {% set within = old.fields | last %}
  {% set place, after = sparkevolve.inside(path, within.name), sparkevolve.inside(renamed, within.name) %}
  {% if within.required %}
    {% do sparkevolve.plan_relax(planner, place, after, within, false) %}
  {% endif %}
  {% do planner.update({'collections': planner.collections + 1}) %}
  {% set projection = sparkevolve.plan_value(
    planner, place, after, within.type, (new.fields | last).type
  ) %}
  {% do planner.update({'collections': planner.collections - 1}) %}
  {% do return(projection if projection.kind == 'keep' else {'kind': old.kind, 'within': projection}) %}
{% endmacro %}


{# Whether a type that both sides share has something inside that needs a change all the same. #}
{% macro needs_descent(renames, type) %}
  {% for child in type.fields %}
    {# Keys are always required, by the spec. #}
    {% if not (type.kind == 'map' and loop.first)
          and (child.id in renames or child.required or sparkevolve.needs_descent(renames, child.type)) %}
      {% do return(true) %}
    {% endif %}
  {% endfor %}
  {% do return(false) %}
{% endmacro %}
