{# What Spark is asked about a query, and about a table. Each statement of a Thrift connection can take as long as the
   profile's `poll_interval`, so there are few. #}


{# The rows that a query returns. #}
{% macro rows(sql) %}
  {% do return(run_query(sql).rows) %}
{% endmacro %}


{% macro run_statement(sql, name='sparkevolve') %}
  {% call statement(name) %}
    {{ sql }}
  {% endcall %}
{% endmacro %}


{# The columns that a query returns, with their types and descriptions. DESCRIBE cuts types off after so many fields: only
   then a second question is needed. #}
{% macro query_fields(relation, sql) %}
  {% set names, types, docs = [], [], [] %}
  {% for row in sparkevolve.rows('describe query select * from (\n' ~ sql ~ '\n) as model_rows') %}
    {% do names.append(row[0]) %}
    {% do types.append(row[1]) %}
    {% do docs.append(row[2]) %}
  {% endfor %}
  {% if ' more field' in types | join(' ') and not sparkevolve.check_source_names(names) %}
    {% set types = sparkevolve.rows(sparkevolve.types_query(sql, names))[0] %}
  {% endif %}
  {% set fields = [] %}
  {% for name in names %}
    {% set type = sparkevolve.parse_type(types[loop.index0]) %}
    {% if type is none %}
      {% do exceptions.raise_compiler_error(
        'The types that the model of ' ~ relation ~ ' returns cannot be read, since names of fields in them contain '
        ~ 'colons, commas or brackets in a way that makes them ambiguous: ' ~ types[loop.index0] ~ '. Give these fields '
        ~ 'other names in the model. Nothing was written.'
      ) %}
    {% endif %}
    {% do fields.append(sparkevolve.field(name, type, false, docs[loop.index0])) %}
  {% endfor %}
  {% do return(fields) %}
{% endmacro %}


{# What matters of a table: its `fields`, numbered, `identifiers` (ids), `partitions` (as Spark describes them), its
   `properties` and `location`, its `name_mapping` (see `read_name_mapping`), the `refs` by name, the snapshot `base` that readers see (none in an empty table), and `base_ms`.
   The refs come first: of a column that somebody adds and fills meanwhile either the values are after the base, so that all
   begins again, or the column is among the fields. #}
{% macro read_table(relation) %}
  {% do sparkevolve.run_statement('refresh table ' ~ relation) %}
  {% set refs = sparkevolve.read_refs(relation) %}
  {% set fields = sparkevolve.numbered(sparkevolve.query_fields(relation, 'select * from ' ~ relation)) %}
  {% set ddl = sparkevolve.read_ddl(sparkevolve.rows('show create table ' ~ relation)[0][0], fields) %}
  {# Spark 3.5 shows only the last of several buckets there. DESCRIBE has each, and is asked only where there is one. #}
  {% set partitions = ddl.partitions if not ddl.has_buckets
    else sparkevolve.described_partitions(sparkevolve.rows('describe table ' ~ relation)) %}
  {% set main = refs.get('main', {}) %}
  {% set mapping = none %}
  {% if sparkevolve.name_mapping() in ddl.properties %}
    {# JSON: not from the DDL, in which quotes are escaped and backslashes are not. #}
    {% set mapping = sparkevolve.read_name_mapping(sparkevolve.table_properties(relation).get(sparkevolve.name_mapping())) %}
  {% endif %}
  {% do return({
    'name_mapping': mapping,
    'relation': relation, 'fields': fields, 'identifiers': sparkevolve.identifier_ids(fields, ddl.properties),
    'partitions': partitions, 'properties': ddl.properties, 'location': ddl.location, 'refs': refs,
    'base': main.get('snapshot'), 'base_ms': main.get('at_ms', 0)
  }) %}
{% endmacro %}


{# The property that says which columns are meant by the names in files without field ids. #}
{% macro name_mapping() %}
  {% do return('schema.name-mapping.default') %}
{% endmacro %}


{# The entries of such a mapping; none for a table without one, 'hidden' if it cannot be read: Spark hides a value with
   `url`, `token`, `secret`, `password` or the like in it, and a column may be called so. #}
{% macro read_name_mapping(text) %}
  {% if text is none %}
    {% do return(none) %}
  {% endif %}
  {% set entries = fromjson(text, 'hidden') %}
  {% do return(entries if entries is sequence and entries is not string else 'hidden') %}
{% endmacro %}


{# Which added columns and fields, and which new names of a plan's changes, files without field ids may have as the name of
   another column: Iceberg's library would give them that name, and the other one's values with it. Each is the `change`, and
   whether it `may_be_own`. Names are compared by their case, as by Iceberg. Where the mapping is hidden, that may be any. #}
{% macro names_of_others(mapping, changes) %}
  {% set found = [] %}
  {% for change in changes if mapping is not none and change.verb in ['added', 'renamed'] %}
    {% set is_rename = change.verb == 'renamed' %}
    {% set name, own = change.new_name if is_rename else change.path.names[-1], change.path.names[-1] if is_rename else none %}
    {% set entries, is_taken = sparkevolve.entries_beside(mapping, change.path.names), namespace(by_other=false) %}
    {% set is_known = own is not none and sparkevolve.entries_named(entries, own) | length > 0 %}
    {% for entry in sparkevolve.entries_named(entries, name) %}
      {# A field keeps the names that it has had: a rename may go back to one of them. #}
      {% if own is none or own not in entry.names %}
        {% set is_taken.by_other = true %}
      {% endif %}
    {% endfor %}
    {% if is_taken.by_other or mapping == 'hidden' %}
      {% do found.append({'change': change, 'may_be_own': is_rename and not is_known}) %}
    {% endif %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# The entries of a mapping among which that of the last of some names would be. Spark tells no field ids, by which Iceberg
   finds them: of an outer field whose name of now is in none, it may be any. #}
{% macro entries_beside(mapping, names) %}
  {% set level = namespace(entries=mapping if mapping != 'hidden' else []) %}
  {% for outer in names[:-1] %}
    {% set inside = [] %}
    {% for entry in sparkevolve.entries_named(level.entries, outer) or level.entries %}
      {% do inside.extend(entry.get('fields') or []) %}
    {% endfor %}
    {% set level.entries = inside %}
  {% endfor %}
  {% do return(level.entries) %}
{% endmacro %}


{% macro entries_named(entries, name) %}
  {% set found = [] %}
  {% for entry in entries if name in entry.names %}
    {% do found.append(entry) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# The branches and tags of a table by name, each with its `snapshot`, as text, when that was made, and the current
   catalog. #}
{% macro read_refs(relation) %}
  {% set found = {} %}
  {% for row in sparkevolve.rows(
    'select r.name, r.type, cast(r.snapshot_id as string), cast(unix_millis(s.committed_at) as string), '
    ~ 'current_catalog() from '
    ~ relation ~ '.refs as r left join ' ~ relation ~ '.snapshots as s on r.snapshot_id = s.snapshot_id'
  ) %}
    {% do found.update({row[0]: {
      'type': row[1], 'snapshot': row[2], 'at_ms': row[3] | int if row[3] is not none else 0, 'catalog': row[4]
    }}) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# The catalog that a table is in: the current one, unless the schema has another one before it (`schema: lake.shop`). A schema
   with dots may be a nested one, too. #}
{% macro catalog_of(relation, current) %}
  {% set parts = (relation | string | replace('`', '')).split('.') %}
  {% set is_stated = parts | length > 2 and parts[0] != current
    and sparkevolve.spark_setting('spark.sql.catalog.' ~ parts[0]) is not none %}
  {% do return(parts[0] if is_stated else current) %}
{% endmacro %}


{# The ids of the fields that a table is identified by: Iceberg lets none of them be NULL. #}
{% macro identifier_ids(fields, properties) %}
  {% set text = properties.get('identifier-fields', '') %}
  {% set found = [] %}
  {% if text | length > 2 %}
    {# Not taken apart: a name may have commas in it. #}
    {% do sparkevolve.collect_identifiers(fields, '', ',' ~ text[1:-1] ~ ',', found) %}
  {% endif %}
  {% do return(found) %}
{% endmacro %}


{% macro collect_identifiers(fields, parent, names, found) %}
  {% for field in fields %}
    {% set path = parent ~ field.name %}
    {% if ',' ~ path ~ ',' in names %}
      {% do found.append(field.id) %}
    {% endif %}
    {% if field.type.kind == 'struct' %}
      {% do sparkevolve.collect_identifiers(field.type.fields, path ~ '.', names, found) %}
    {% endif %}
  {% endfor %}
{% endmacro %}


{# What a table is partitioned by, from the rows of a DESCRIBE TABLE. A column may be called as one of them, but has a type. #}
{% macro described_partitions(rows) %}
  {% set read = namespace(is_below=false, terms=[]) %}
  {% for row in rows %}
    {% if row[0] == '# Partitioning' and not row[1] %}
      {% set read.is_below = true %}
    {% elif read.is_below and modules.re.match('Part [0-9]+$', row[0] or '') %}
      {% do read.terms.append(row[1]) %}
    {% endif %}
  {% endfor %}
  {% do return(read.terms) %}
{% endmacro %}


{# Read the text of SHOW CREATE TABLE: mark the fields that are NOT NULL, and return `partitions`, but for buckets that it has
   as a clause of their own (`has_buckets`), `properties` and `location`.

   Names and types are known already, so that the text is only gone along: whatever stands in a description is passed
   over. Where it cannot be gone along any further, a column counts as optional; a NULL is then Spark's to refuse. #}
{% macro read_ddl(text, fields) %}
  {% set start = text.find('(\n  ') %}
  {% set at = namespace(rest=text[start + 4:], is_lost=start < 0) %}
  {% for field in fields %}
    {% set rest = sparkevolve.after_name(at.rest, field.name, ' ') if not at.is_lost else none %}
    {% set rest = sparkevolve.after_type(rest, field.type) if rest is not none else none %}
    {% if rest is none %}
      {% set at.is_lost = true %}
    {% else %}
      {% do field.update({'required': rest.startswith(' NOT NULL')}) %}
      {% set marks = sparkevolve.name_forms(fields[loop.index].name, ' ') if loop.index < fields | length else [] %}
      {% set at.rest = sparkevolve.after_first(rest, ',\n  ', marks) if marks else rest %}
      {% set at.is_lost = at.rest is none %}
    {% endif %}
  {% endfor %}
  {% set tail = at.rest if not at.is_lost else text %}
  {% set properties, partitions = {}, [] %}
  {% for pair in modules.re.findall("\n  '((?:[^'\\\\]|\\\\.)*)' = '((?:[^'\\\\]|\\\\.)*)'", tail) %}
    {% do properties.update({pair[0]: pair[1]}) %}
  {% endfor %}
  {% set partitioned = modules.re.search(
    '\\)\nUSING [^\n]*\n(?:OPTIONS \\((?:\n  [^\n]*)*\\)\n)?PARTITIONED BY \\(([^\n]*)\\)\n', tail
  ) %}
  {% if partitioned %}
    {% do partitions.extend(sparkevolve.split_terms(partitioned.group(1)) | map("trim")) %}
  {% endif %}
  {% set location = modules.re.search("\nLOCATION '([^\n]*)'\n", tail) %}
  {% do return({
    'partitions': partitions, 'properties': properties, 'location': location.group(1) if location and not at.is_lost else none,
    'is_lost': at.is_lost,
    'has_buckets': modules.re.search('\nCLUSTERED BY \\([^\n]*\\)\nINTO [0-9]+ BUCKETS', tail) is not none
  }) %}
{% endmacro %}


{# How Spark may write a name, with what follows it. #}
{% macro name_forms(name, end) %}
  {% do return([name ~ end, sparkevolve.quote(name) ~ end]) %}
{% endmacro %}


{# What follows a name at the beginning of a text; none if that is another name. #}
{% macro after_name(text, name, end) %}
  {% for form in sparkevolve.name_forms(name, end) if text.startswith(form) %}
    {% do return(text[form | length:]) %}
  {% endfor %}
  {% do return(none) %}
{% endmacro %}


{# What follows the first `separator` that one of a few texts follows, that text included; none if there is none. #}
{% macro after_first(text, separator, forms) %}
  {% set at = namespace(passed=0) %}
  {% for part in text.split(separator) %}
    {% set rest = text[at.passed:] %}
    {% if not loop.first and (rest.startswith(forms[0]) or rest.startswith(forms[1])) %}
      {% do return(rest) %}
    {% endif %}
    {% set at.passed = at.passed + part | length + separator | length %}
  {% endfor %}
  {% do return(none) %}
{% endmacro %}


{# What follows a type that is known, and mark the fields in it that are NOT NULL; none if another type stands there. #}
{% macro after_type(text, type) %}
  {% if type.kind == 'leaf' %}
    {% set found = modules.re.match('[A-Z_]+(?: COLLATE \\w+)?(?:\\([0-9, ]*\\))?', text) %}
    {% do return(text[found.group(0) | length:] if found else none) %}
  {% elif type.kind == 'array' %}
    {% set rest = sparkevolve.after_type(text[6:], type.fields[0].type) if text.startswith('ARRAY<') else none %}
    {% do return(rest[1:] if rest is not none and rest.startswith('>') else none) %}
  {% elif type.kind == 'map' %}
    {% set rest = sparkevolve.after_type(text[4:], type.fields[0].type) if text.startswith('MAP<') else none %}
    {% set rest = sparkevolve.after_type(rest[2:], type.fields[1].type)
      if rest is not none and rest.startswith(', ') else none %}
    {% do return(rest[1:] if rest is not none and rest.startswith('>') else none) %}
  {% elif not text.startswith('STRUCT<') %}
    {% do return(none) %}
  {% endif %}
  {% set at = namespace(rest=text[7:]) %}
  {% for field in type.fields %}
    {% set rest = sparkevolve.after_name(at.rest, field.name, ': ') if at.rest is not none else none %}
    {% set rest = sparkevolve.after_type(rest, field.type) if rest is not none else none %}
    {% if rest is not none %}
      {% do field.update({'required': rest.startswith(' NOT NULL')}) %}
      {% set rest = rest[9:] if field.required else rest %}
    {% endif %}
    {% if rest is none %}
      {% set at.rest = none %}
    {% elif loop.last %}
      {% set end = rest.find("'>") + 1 if rest.startswith(' COMMENT ') else 0 %}
      {% set at.rest = rest[end + 1:] if rest[end:end + 1] == '>' else none %}
    {% elif rest.startswith(', ') %}
      {% set at.rest = rest[2:] %}
    {% else %}
      {% set at.rest = sparkevolve.after_first(rest, "', ", sparkevolve.name_forms(type.fields[loop.index].name, ': ')) %}
    {% endif %}
  {% endfor %}
  {% do return(at.rest) %}
{% endmacro %}


{# What stands between the commas that are neither in parentheses nor in backticks. #}
{% macro split_terms(text) %}
  {% set terms = [] %}
  {% set at = namespace(term='', depth=0, is_quoted=false) %}
  {% for c in text %}
    {% if c == ',' and at.depth == 0 and not at.is_quoted %}
      {% do terms.append(at.term) %}
      {% set at.term = '' %}
    {% else %}
      {% if c == '`' %}
        {% set at.is_quoted = not at.is_quoted %}
      {% elif c == '(' and not at.is_quoted %}
        {% set at.depth = at.depth + 1 %}
      {% elif c == ')' and not at.is_quoted %}
        {% set at.depth = at.depth - 1 %}
      {% endif %}
      {% set at.term = at.term ~ c %}
    {% endif %}
  {% endfor %}
  {% do terms.append(at.term) %}
  {% do return(terms) %}
{% endmacro %}
