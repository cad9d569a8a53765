{# Spark's types: how its answers are read, how one is written, and which one can hold the values of another.

   A type is a mapping: `kind` is `leaf` (then `text` has Spark's name), `struct`, `array` or `map`; `fields` are the
   fields directly inside: of a struct, an array's `element`, a map's `key` and `value`. A field has a `name`, a `type`,
   whether it is `required`, and the description `doc`; those of a table also an `id`, which is none of Iceberg's, but
   tells them apart. #}


{% macro leaf(text) %}
  {% do return({'kind': 'leaf', 'text': text, 'fields': []}) %}
{% endmacro %}


{% macro field(name, type, required=false, doc=none) %}
  {% do return({'name': name, 'type': type, 'required': required, 'doc': doc, 'id': none}) %}
{% endmacro %}


{% macro array_type(element, required=false) %}
  {% do return({'kind': 'array', 'text': '', 'fields': [sparkevolve.field('element', element, required)]}) %}
{% endmacro %}


{% macro map_type(key, value, required=false) %}
  {% do return({
    'kind': 'map', 'text': '',
    'fields': [sparkevolve.field('key', key, true), sparkevolve.field('value', value, required)]
  }) %}
{% endmacro %}


{% macro struct_type(fields) %}
  {% do return({'kind': 'struct', 'text': '', 'fields': fields}) %}
{% endmacro %}


{# Give each field of a table, however deep, an id of its own. #}
{% macro numbered(fields, counter=none) %}
  {% set ids = counter or namespace(last=0) %}
  {% for field in fields %}
    {% set ids.last = ids.last + 1 %}
    {% do field.update({'id': ids.last}) %}
    {% if field.type.fields %}
      {% do sparkevolve.numbered(field.type.fields, ids) %}
    {% endif %}
  {% endfor %}
  {% do return(fields) %}
{% endmacro %}


{# Read what Spark's `typeof` has written; none for what has no reading. Spark does not quote names in it, so that one
   may contain `:`, `,` or brackets: a name goes on up to the first colon that a type follows. #}
{% macro parse_type(text) %}
  {% set colons = [] %}
  {% set at = namespace(position=0) %}
  {% for part in text.split(':') %}
    {% if not loop.last %}
      {% do colons.append(at.position + part | length) %}
      {% set at.position = at.position + part | length + 1 %}
    {% endif %}
  {% endfor %}
  {# A type that is not known here is one that Iceberg lacks; known ones first, for the sake of odd names. #}
  {% for known_only in [true, false] %}
    {% set found = sparkevolve.type_at(text, 0, colons, known_only, {}) %}
    {% if found is not none and found[1] == text | length %}
      {% do return(found[0]) %}
    {% endif %}
  {% endfor %}
  {% do return(none) %}
{% endmacro %}


{# The type at `start` of a text and where it ends, or none; `seen` has what was found at a position before. #}
{% macro type_at(text, start, colons, known_only, seen) %}
  {% if start not in seen %}
    {% do seen.update({start: sparkevolve.read_type(text, start, colons, known_only, seen)}) %}
  {% endif %}
  {% do return(seen[start]) %}
{% endmacro %}


{% macro read_type(text, start, colons, known_only, seen) %}
  {% set rest = text[start:] %}
  {% if rest.startswith('array<') %}
    {% set element = sparkevolve.type_at(text, start + 6, colons, known_only, seen) %}
    {% if element is none or text[element[1]:element[1] + 1] != '>' %}
      {% do return(none) %}
    {% endif %}
    {% do return([sparkevolve.array_type(element[0]), element[1] + 1]) %}
  {% elif rest.startswith('map<') %}
    {% set key = sparkevolve.type_at(text, start + 4, colons, known_only, seen) %}
    {% if key is none or text[key[1]:key[1] + 1] != ',' %}
      {% do return(none) %}
    {% endif %}
    {% set value = sparkevolve.type_at(text, key[1] + 1, colons, known_only, seen) %}
    {% if value is none or text[value[1]:value[1] + 1] != '>' %}
      {% do return(none) %}
    {% endif %}
    {% do return([sparkevolve.map_type(key[0], value[0]), value[1] + 1]) %}
  {% elif rest.startswith('struct<') %}
    {% do return(sparkevolve.read_struct(text, start + 7, colons, known_only, seen)) %}
  {% endif %}
  {% set found = modules.re.match('(interval [a-z]+(?: to [a-z]+)?|string collate \\w+|\\w+)(\\([\\w, :]*\\))?', rest) %}
  {% if found %}
    {% set word = found.group(1) %}
    {% if not known_only or found.group(2) or word in sparkevolve.storable_words() + ['void', 'variant', 'interval']
          or word.startswith('interval ') or word.startswith('string collate ') %}
      {% do return([sparkevolve.leaf(found.group(0)), start + found.group(0) | length]) %}
    {% endif %}
  {% endif %}
  {% do return(none) %}
{% endmacro %}


{% macro read_struct(text, start, colons, known_only, seen) %}
  {% if text[start:start + 1] == '>' %}
    {% do return([sparkevolve.struct_type([]), start + 1]) %}
  {% endif %}
  {% set fields = [] %}
  {% set at = namespace(start=start) %}
  {% for colon in colons if colon >= start %}
    {% if colon >= at.start %}
      {% set found = sparkevolve.type_at(text, colon + 1, colons, known_only, seen) %}
      {% set after = text[found[1]:found[1] + 1] if found is not none else '' %}
      {% if after == ',' or after == '>' %}
        {% do fields.append(sparkevolve.field(text[at.start:colon], found[0])) %}
        {% if after == '>' %}
          {% do return([sparkevolve.struct_type(fields), found[1] + 1]) %}
        {% endif %}
        {% set at.start = found[1] + 1 %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {% do return(none) %}
{% endmacro %}


{# Types of one word that Iceberg has. #}
{% macro storable_words() %}
  {% do return([
    'boolean', 'tinyint', 'smallint', 'int', 'bigint', 'float', 'double', 'string', 'binary', 'date', 'timestamp',
    'timestamp_ntz'
  ]) %}
{% endmacro %}


{# Whether Iceberg has a type for one of Spark's that has no others in it. #}
{% macro is_storable(text) %}
  {% do return(
    text in sparkevolve.storable_words()
    or (text[-1:] == ')' and (text.startswith('decimal(') or text.startswith('char(') or text.startswith('varchar(')))
  ) %}
{% endmacro %}


{# The type that a column has in a table that is made from one of a query; what Iceberg lacks is stored as string. #}
{% macro stored_type(type) %}
  {% if type.kind == 'leaf' %}
    {% if type.text in ['tinyint', 'smallint'] %}
      {% do return(sparkevolve.leaf('int')) %}
    {% elif not sparkevolve.is_storable(type.text) or type.text.startswith('char(') or type.text.startswith('varchar(') %}
      {% do return(sparkevolve.leaf('string')) %}
    {% endif %}
    {% do return(sparkevolve.leaf(type.text | replace(' ', ''))) %}
  {% elif type.kind == 'array' %}
    {% do return(sparkevolve.array_type(sparkevolve.stored_type(type.fields[0].type))) %}
  {% elif type.kind == 'map' %}
    {% do return(sparkevolve.map_type(
      sparkevolve.stored_type(type.fields[0].type), sparkevolve.stored_type(type.fields[1].type)
    )) %}
  {% endif %}
  {% set fields = [] %}
  {% for field in type.fields %}
    {% do fields.append(sparkevolve.field(field.name, sparkevolve.stored_type(field.type))) %}
  {% endfor %}
  {% do return(sparkevolve.struct_type(fields)) %}
{% endmacro %}


{# The type in Spark SQL. `timestamp` may mean the other one there, under `spark.sql.timestampType`. #}
{% macro spark_type(type, timestamptz='timestamp_ltz') %}
  {% if type.kind == 'leaf' %}
    {% do return(timestamptz if type.text == 'timestamp' else type.text) %}
  {% elif type.kind == 'array' %}
    {% do return('array<' ~ sparkevolve.spark_type(type.fields[0].type, timestamptz) ~ '>') %}
  {% elif type.kind == 'map' %}
    {% do return(
      'map<' ~ sparkevolve.spark_type(type.fields[0].type, timestamptz) ~ ','
      ~ sparkevolve.spark_type(type.fields[1].type, timestamptz) ~ '>'
    ) %}
  {% endif %}
  {% set fields = [] %}
  {% for field in type.fields %}
    {% do fields.append(
      '`' ~ field.name | replace('`', '``') ~ '`:' ~ sparkevolve.spark_type(field.type, timestamptz)
    ) %}
  {% endfor %}
  {% do return('struct<' ~ fields | join(',') ~ '>') %}
{% endmacro %}


{# The type as a person reads it in a message. #}
{% macro type_text(type) %}
  {% do return(sparkevolve.spark_type(type, 'timestamp')) %}
{% endmacro %}


{# Whether some values of a type come through a CAST to another one, as the values they are. #}
{% macro may_be_cast(source, target) %}
  {% set one, other = sparkevolve.family_of(source), sparkevolve.family_of(target) %}
  {% set casts = ['bytes text', 'number text', 'number truth', 'text time', 'text truth'] %}
  {% do return(
    [one, other] | sort | join(' ') in casts or (one == other and one in ['number', 'time'])
  ) %}
{% endmacro %}


{# The name of the types among which a CAST takes a type; empty for one that has no such others. #}
{% macro family_of(type) %}
  {% set names = {
    'int': 'number', 'bigint': 'number', 'float': 'number', 'double': 'number', 'decimal': 'number', 'date': 'time',
    'timestamp': 'time', 'timestamp_ltz': 'time', 'timestamp_ntz': 'time', 'string': 'text', 'boolean': 'truth',
    'binary': 'bytes'
  } %}
  {% do return(names.get(type.text.split('(')[0], '') if type.kind == 'leaf' else '') %}
{% endmacro %}


{# Whether two types store the same values in the same shape: names by lower case, fields in the same order. #}
{% macro is_same(source, target) %}
  {% if source.kind != target.kind or source.fields | length != target.fields | length %}
    {% do return(false) %}
  {% elif source.kind == 'leaf' %}
    {% do return(source.text == target.text) %}
  {% endif %}
  {% for one in source.fields %}
    {% set other = target.fields[loop.index0] %}
    {% if one.name | lower != other.name | lower or not sparkevolve.is_same(one.type, other.type) %}
      {% do return(false) %}
    {% endif %}
  {% endfor %}
  {% do return(true) %}
{% endmacro %}


{# Precision and scale of a decimal; none for another type. #}
{% macro decimal_parts(text) %}
  {% set found = modules.re.match('decimal\\(([0-9]+),([0-9]+)\\)', text) %}
  {% do return([found.group(1) | int, found.group(2) | int] if found else none) %}
{% endmacro %}


{# Whether each value of one type without others in it can be cast to the wider one without any loss. #}
{% macro is_safe_upcast(source, target) %}
  {% if source.kind != 'leaf' or target.kind != 'leaf' %}
    {% do return(false) %}
  {% endif %}
  {% set wider = sparkevolve.decimal_parts(target.text) %}
  {% if wider is not none %}
    {% set digits = {'int': 10, 'bigint': 19}.get(source.text) %}
    {% set narrower = sparkevolve.decimal_parts(source.text) %}
    {% if digits is not none %}
      {% do return(wider[0] - wider[1] >= digits) %}
    {% endif %}
    {% do return(
      narrower is not none and source.text != target.text and wider[1] >= narrower[1]
      and wider[0] - wider[1] >= narrower[0] - narrower[1]
    ) %}
  {% endif %}
  {% do return(
    (source.text == 'int' and target.text in ['bigint', 'double'])
    or (source.text == 'float' and target.text == 'double')
  ) %}
{% endmacro %}


{# Whether a column may become another type without rewriting any data. #}
{% macro is_widening(old, new) %}
  {% if old.kind != 'leaf' or new.kind != 'leaf' %}
    {% do return(false) %}
  {% elif old.text == 'void' %}
    {# A column without a type, of format version 3: it has no values yet. #}
    {% do return(new.text != 'void') %}
  {% endif %}
  {% set before = sparkevolve.decimal_parts(old.text) %}
  {% set after = sparkevolve.decimal_parts(new.text) %}
  {% if before is not none and after is not none %}
    {% do return(before[1] == after[1] and before[0] < after[0]) %}
  {% endif %}
  {% do return(
    (old.text == 'int' and new.text == 'bigint') or (old.text == 'float' and new.text == 'double')
  ) %}
{% endmacro %}


{# Whether a place of one type can take each value of another. It may be widened for that, and fields may be added to and
   missing in structs. #}
{% macro can_take(old, new, widens) %}
  {% if old.kind == 'struct' and new.kind == 'struct' %}
    {% set there = sparkevolve.siblings(old.fields) %}
    {% for field in new.fields if field.name | lower in there %}
      {% if not sparkevolve.can_take(there[field.name | lower].type, field.type, widens) %}
        {% do return(false) %}
      {% endif %}
    {% endfor %}
    {% do return(true) %}
  {% elif old.kind == 'array' and new.kind == 'array' %}
    {% do return(sparkevolve.can_take(old.fields[0].type, new.fields[0].type, widens)) %}
  {% elif old.kind == 'map' and new.kind == 'map' %}
    {% do return(
      sparkevolve.is_same(new.fields[0].type, old.fields[0].type)
      and sparkevolve.can_take(old.fields[1].type, new.fields[1].type, widens)
    ) %}
  {% endif %}
  {% do return(
    sparkevolve.is_same(new, old) or sparkevolve.is_safe_upcast(new, old)
    or (widens and sparkevolve.is_widening(old, new))
  ) %}
{% endmacro %}


{# Whether a type is a variant or has one in it. #}
{% macro has_variant(type) %}
  {% if type.text == 'variant' %}
    {% do return(true) %}
  {% endif %}
  {% for field in type.fields %}
    {% if sparkevolve.has_variant(field.type) %}
      {% do return(true) %}
    {% endif %}
  {% endfor %}
  {% do return(false) %}
{% endmacro %}


{# Whether a type is a map or has one in it. #}
{% macro has_map(type) %}
  {% if type.kind == 'map' %}
    {% do return(true) %}
  {% endif %}
  {% for field in type.fields if field.type.kind != 'leaf' %}
    {% if sparkevolve.has_map(field.type) %}
      {% do return(true) %}
    {% endif %}
  {% endfor %}
  {% do return(false) %}
{% endmacro %}


{# A query with the columns of another, and none of its rows. #}
{% macro no_rows(sql) %}
  {% do return('select * from (\n' ~ sql ~ '\n) as model_rows where false') %}
{% endmacro %}


{# A query whose one row has the type of each column of another, as text. It reads no rows. DESCRIBE would cut types off
   at 25 fields, and in the type of all columns together it could not be told where a name ends. #}
{% macro types_query(sql, names) %}
  {% set types = [] %}
  {% for name in names %}
    {% do types.append('typeof(DBT_INTERNAL_MODEL.`' ~ name | replace('`', '``') ~ '`)') %}
  {% endfor %}
  {% do return(
    'select ' ~ types | join(', ') ~ ' from (select 1 as one) as one_row left join (' ~ sparkevolve.no_rows(sql)
    ~ ') as DBT_INTERNAL_MODEL on true'
  ) %}
{% endmacro %}
