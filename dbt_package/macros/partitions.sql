{# What a table is partitioned by: as Spark describes it, and as one writes it in `partition_by`. #}


{# Each term in one form: `days(ts)`, `bucket(4, id)`, or a column; folded, without backticks. #}
{% macro parse_partitions(terms) %}
  {% set others = {
    'year': 'years', 'month': 'months', 'day': 'days', 'date': 'days', 'hour': 'hours', 'date_hour': 'hours'
  } %}
  {% set found = [] %}
  {% for listed in terms %}
    {% for term in sparkevolve.split_terms(listed | string) %}
      {% set call = modules.re.match('(\\w+)\\s*\\(((?:.|\\n)*)\\)$', term | trim) %}
      {% if not call %}
        {% do found.append(sparkevolve.partition_text('identity', [term])) %}
      {% else %}
        {% set name = call.group(1) | lower %}
        {% do found.append(sparkevolve.partition_text(
          others.get(name, name), sparkevolve.split_terms(call.group(2))
        )) %}
      {% endif %}
    {% endfor %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{% macro partition_text(transform, arguments) %}
  {% set numbers, columns = [], [] %}
  {% for argument in arguments %}
    {% if modules.re.match('[0-9]+$', argument | trim) %}
      {% do numbers.append(argument | trim) %}
    {% else %}
      {% do columns.append(argument) %}
    {% endif %}
  {% endfor %}
  {% set column = columns | join(',') | replace('`', '') | trim | lower %}
  {% if transform == 'identity' %}
    {% do return(column) %}
  {% endif %}
  {% do return(transform ~ '(' ~ (numbers | join(',') ~ ', ' if numbers else '') ~ column ~ ')') %}
{% endmacro %}


{# What the model's table is to be partitioned by: Iceberg's buckets are partitions too. #}
{% macro wanted_partitions(settings) %}
  {% set found = sparkevolve.parse_partitions(settings.partition_by) %}
  {% if settings.clustered_by and settings.buckets %}
    {% do found.append(sparkevolve.partition_text('bucket', [settings.buckets | string] + settings.clustered_by)) %}
  {% endif %}
  {% do return(found) %}
{% endmacro %}


{# Whether two lists of terms are the same partitions, once columns are renamed from old to new. #}
{% macro same_partitions(one, other, renames) %}
  {% set flat, nested = {}, {} %}
  {% for old, new in renames.items() %}
    {% set name = old | string | replace('`', '') | lower %}
    {% do flat.update({name: new | string | lower}) %}
    {% set parts = name.split('.') %}
    {# A dot parts a field from its struct, or is part of a column's name: only the table knows. #}
    {% do nested.update({name: (parts[:-1] + [new | string | lower]) | join('.')}) %}
  {% endfor %}
  {% for names in [flat, nested] %}
    {% if sparkevolve.renamed_partitions(one, names) == sparkevolve.renamed_partitions(other, names) %}
      {% do return(true) %}
    {% endif %}
  {% endfor %}
  {% do return(false) %}
{% endmacro %}


{% macro renamed_partitions(terms, renames) %}
  {% set found, ordered = [], [] %}
  {% for old in renames %}
    {% do ordered.append({'size': old | length, 'old': old}) %}
  {% endfor %}
  {% for term in terms %}
    {% set call = modules.re.match('(\\w+\\((?:[0-9]+, )?)((?:.|\\n)*)\\)$', term) %}
    {% set at = namespace(column=call.group(2) if call else term) %}
    {# Fields before the structs that they are in, whose old names their paths have. #}
    {% for rename in ordered | sort(attribute='size', reverse=true) %}
      {% if at.column == rename.old or at.column.startswith(rename.old ~ '.') %}
        {% set at.column = renames[rename.old] ~ at.column[rename.size:] %}
      {% endif %}
    {% endfor %}
    {% do found.append(call.group(1) ~ at.column ~ ')' if call else at.column) %}
  {% endfor %}
  {% do return(found | unique | sort) %}
{% endmacro %}


{# Why a new table with these fields cannot be partitioned as its model says. A transform of another name is left to Spark. #}
{% macro partition_refusals(fields, settings) %}
  {% set with_order, times = ['int', 'bigint', 'decimal', 'string', 'binary'], ['timestamp', 'timestamp_ntz'] %}
  {% set dates = {'types': ['date'] + times, 'text': 'a date or a timestamp'} %}
  {% set takes = {
    'years': dates, 'months': dates, 'days': dates, 'hours': {'types': times, 'text': 'a timestamp'},
    'bucket': {
      'types': with_order + ['date'] + times,
      'text': 'a whole number, a decimal, a string, a binary, a date or a timestamp'
    },
    'truncate': {'types': with_order, 'text': 'a whole number, a decimal, a string or a binary'}
  } %}
  {% set by_bucket = [] %}
  {% if settings.buckets and settings.clustered_by | length > 1 %}
    {% do return([sparkevolve.refuse_several_in_a_bucket(settings.clustered_by, settings.buckets)]) %}
  {% elif settings.buckets and settings.clustered_by %}
    {% do by_bucket.append(sparkevolve.partition_text('bucket', [settings.buckets | string] + settings.clustered_by)) %}
  {% endif %}
  {% set wanted = {'partition_by': sparkevolve.parse_partitions(settings.partition_by), 'clustered_by': by_bucket} %}
  {% set types, refusals = {}, [] %}
  {% do sparkevolve.note_types_by_path(fields, '', types) %}
  {% for setting, terms in wanted.items() %}
    {% for term in terms %}
      {% set call = modules.re.match('(\\w+)\\((?:[0-9]+, )?((?:.|\\n)*)\\)$', term) %}
      {% set transform, column = call.group(1) if call else 'identity', call.group(2) if call else term %}
      {% set type = types.get(column) %}
      {% if transform == 'identity' or transform in takes %}
        {% if type is none %}
          {% do refusals.append(sparkevolve.refuse_no_partition_source(setting, term, column, fields)) %}
        {% elif transform == 'identity' %}
          {% if type.startswith('struct<') or type.startswith('array<') or type.startswith('map<') or type.startswith('variant') %}
            {% do refusals.append(sparkevolve.refuse_other_partition_source(
              setting, term, column, type, 'it takes anything but a struct, list, map or variant'
            )) %}
          {% endif %}
        {% elif type.split('(')[0] not in takes[transform].types %}
          {% do refusals.append(sparkevolve.refuse_other_partition_source(
            setting, term, column, type, '`' ~ transform ~ '` takes ' ~ takes[transform].text
          )) %}
        {% endif %}
      {% endif %}
    {% endfor %}
  {% endfor %}
  {% do return(refusals) %}
{% endmacro %}


{# Put the type of each field that is in no list or map into `types`, by its path as `parse_partitions` has it. #}
{% macro note_types_by_path(fields, before, types) %}
  {% for field in fields %}
    {% set path = before ~ field.name | lower | replace('`', '') %}
    {% do types.update({path: sparkevolve.type_text(field.type)}) %}
    {% if field.type.kind == 'struct' %}
      {% do sparkevolve.note_types_by_path(field.type.fields, path ~ '.', types) %}
    {% endif %}
  {% endfor %}
{% endmacro %}


{# The ids of the columns and fields that a table is partitioned by now. #}
{% macro partition_sources(table) %}
  {% set found = [] %}
  {% for term in sparkevolve.parse_partitions(table.partitions) %}
    {% set call = modules.re.match('\\w+\\((?:[0-9]+, )?((?:.|\\n)*)\\)$', term) %}
    {% set located = sparkevolve.locate(
      table.fields, sparkevolve.rename_steps(call.group(1) if call else term)
    ) %}
    {% if located is not none %}
      {% do found.append(located.field.id) %}
    {% endif %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# By the folded name of each partition field that a table has, or once had, the id of the only column whose path that may
   be: of the one that is called so. #}
{% macro partition_names(table) %}
  {% set text = sparkevolve.rows(
    'select typeof(p._partition) from (select 1 as one) as one_row left join (select _partition from ' ~ table.relation
    ~ ' where false) as p on true'
  ) %}
  {% set type = sparkevolve.parse_type(text[0][0]) %}
  {% set known, found = sparkevolve.siblings(table.fields), {} %}
  {% for field in type.fields %}
    {% set column = known.get(field.name | lower) %}
    {% do found.update({field.name | lower: column.id if column is not none else none}) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}
