{# Column names: how two are compared, which ones cannot be used, and how one is written in Spark SQL.

   A path, of a column or of a field in one, is a mapping of its `names`, from the top down, and its `text`, in which
   each name stands in backticks. #}


{# Iceberg's names for the metadata columns of every table. #}
{% macro reserved_names() %}
  {% do return([
    '_file', '_pos', '_deleted', '_spec_id', '_partition', '_row_id', '_last_updated_sequence_number',
    '_change_type', '_change_ordinal', '_commit_snapshot_id'
  ]) %}
{% endmacro %}


{# A name as a Spark SQL identifier. #}
{% macro quote(name) %}
  {% do return('`' ~ name | replace('`', '``') ~ '`') %}
{% endmacro %}


{# Names in backticks, separated by commas. #}
{% macro listed(names) %}
  {% set quoted = [] %}
  {% for name in names %}
    {% do quoted.append('`' ~ name | replace('`', '``') ~ '`') %}
  {% endfor %}
  {% do return(quoted | join(', ')) %}
{% endmacro %}


{# The name that a user wrote with or without backticks around it. #}
{% macro unquote(name) %}
  {% set text = name | string %}
  {% if text | length > 2 and text[0] == '`' and text[-1] == '`' %}
    {% set inner = text[1:-1] %}
    {% if '`' not in inner | replace('``', '') %}
      {% do return(inner | replace('``', '`')) %}
    {% endif %}
  {% endif %}
  {% do return(text) %}
{% endmacro %}


{% macro no_path() %}
  {% do return({'names': [], 'text': ''}) %}
{% endmacro %}


{# The path of what is called `name` inside of `path`. #}
{% macro inside(path, name) %}
  {% set quoted = '`' ~ name | replace('`', '``') ~ '`' %}
  {% do return({
    'names': path.names + [name],
    'text': path.text ~ '.' ~ quoted if path.names else quoted
  }) %}
{% endmacro %}


{# The path of these names. #}
{% macro path_of(names) %}
  {% set quoted = [] %}
  {% for name in names %}
    {% do quoted.append('`' ~ name | replace('`', '``') ~ '`') %}
  {% endfor %}
  {% do return({'names': names | list, 'text': quoted | join('.')}) %}
{% endmacro %}


{# The levels of a dotted path that a user wrote, each with whether it stood in backticks; none for what cannot be read
   so, such as `a..b`. What stands in backticks is one level, dots and all. #}
{% macro dotted_levels(text) %}
  {% set levels = [] %}
  {% set read = namespace(rest=text, is_wrong=text == '') %}
  {% for _ in range(text | length) %}
    {% if read.rest != '' and not read.is_wrong %}
      {% set quoted = modules.re.match('`((?:[^`]|``)+)`', read.rest) %}
      {% set plain = modules.re.match('[^.`][^.]*', read.rest) %}
      {% if quoted %}
        {% do levels.append([quoted.group(1) | replace('``', '`'), true]) %}
      {% elif plain %}
        {% do levels.append([plain.group(0), false]) %}
      {% endif %}
      {% set found = quoted or plain %}
      {% if not found %}
        {% set read.is_wrong = true %}
      {% else %}
        {% set read.rest = read.rest[found.group(0) | length:] %}
        {# A dot parts two levels, and is nothing at the end. #}
        {% if read.rest == '.' or (read.rest != '' and read.rest[0] != '.') %}
          {% set read.is_wrong = true %}
        {% else %}
          {% set read.rest = read.rest[1:] %}
        {% endif %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {% do return(none if read.is_wrong else levels) %}
{% endmacro %}


{# Names that Spark does not keep apart everywhere, in groups of two or more: most of it compares them in lower case,
   but its column pruning does so character by character, to upper and to lower case. #}
{% macro collisions(names) %}
  {% set groups = [] %}
  {% set by_lower = {} %}
  {% set by_character = {} %}
  {% for name in names %}
    {% set lower = name | lower %}
    {% set characters = [] %}
    {% for c in name %}
      {% do characters.append((c if c | upper | length > 1 else c | upper) | lower | first) %}
    {% endfor %}
    {% set ignoring_case = characters | join('') %}
    {% set known = by_lower[lower] if lower in by_lower else by_character.get(ignoring_case) %}
    {% if known is none %}
      {% set known = [] %}
      {% do groups.append(known) %}
    {% endif %}
    {% do known.append(name) %}
    {% if lower not in by_lower %}
      {% do by_lower.update({lower: known}) %}
    {% endif %}
    {% if ignoring_case not in by_character %}
      {% do by_character.update({ignoring_case: known}) %}
    {% endif %}
  {% endfor %}
  {% set found = [] %}
  {% for group in groups if group | length > 1 %}
    {% do found.append(group) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# A name, or that with the first number behind it that makes it none of those that are taken. #}
{% macro free_name(name, taken) %}
  {% set others = taken | map('lower') | list %}
  {% for number in range(1, taken | length + 2) %}
    {% set candidate = name if number == 1 else name ~ number %}
    {% if candidate | lower not in others %}
      {% do return(candidate) %}
    {% endif %}
  {% endfor %}
{% endmacro %}


{# Whether a name is one without quotes around it. #}
{% macro is_plain_name(name) %}
  {% set found = modules.re.match('[A-Za-z_]\\w*', name) %}
  {% do return(found is not none and found.group(0) == name) %}
{% endmacro %}


{# Whether it is so in YAML, too, which has other meanings for some words. #}
{% macro is_word(name) %}
  {% do return(
    sparkevolve.is_plain_name(name)
    and name | lower not in ['y', 'n', 'yes', 'no', 'on', 'off', 'true', 'false', 'null']
  ) %}
{% endmacro %}


{# A name, or a path of names, as a user would write it into a configuration, in backticks only where needed. #}
{% macro config_path(names) %}
  {% set parts = [] %}
  {% for name in names %}
    {% do parts.append(name if sparkevolve.is_plain_name(name) else sparkevolve.quote(name)) %}
  {% endfor %}
  {% set text = parts | join('.') %}
  {% do return(text if '.' in text and '`' not in text else sparkevolve.config_name(text)) %}
{% endmacro %}


{% macro config_name(name) %}
  {% do return(name if sparkevolve.is_word(name) else sparkevolve.in_yaml(name)) %}
{% endmacro %}


{% macro in_yaml(text) %}
  {% do return('"' ~ text | replace('\\', '\\\\') | replace('"', '\\"') ~ '"') %}
{% endmacro %}


{# A Spark SQL expression of exactly `text`, whatever the settings of the session are: a backslash or a quote in a
   literal depends on `spark.sql.parser.escapedStringLiterals`, and `${` on `spark.sql.variable.substitute`. #}
{% macro text_literal(text) %}
  {% if not modules.re.search("[\\\\'\\x00-\\x08\\x0b-\\x1f\\x7f]|\\$\\{", text) %}
    {% do return("'" ~ text ~ "'") %}
  {% endif %}
  {% set codes = {
    '\u0000': 0, '\u0001': 1, '\u0002': 2, '\u0003': 3, '\u0004': 4, '\u0005': 5, '\u0006': 6, '\u0007': 7,
    '\u0008': 8, '\u000b': 11, '\u000c': 12, '\u000d': 13, '\u000e': 14, '\u000f': 15, '\u0010': 16, '\u0011': 17,
    '\u0012': 18, '\u0013': 19, '\u0014': 20, '\u0015': 21, '\u0016': 22, '\u0017': 23, '\u0018': 24, '\u0019': 25,
    '\u001a': 26, '\u001b': 27, '\u001c': 28, '\u001d': 29, '\u001e': 30, '\u001f': 31, '$': 36, '\u0027': 39,
    '\u005c': 92, '\u007f': 127
  } %}
  {% set parts = [] %}
  {% set plain = namespace(text='') %}
  {% for c in text %}
    {% if c in codes %}
      {% if plain.text %}
        {% do parts.append("'" ~ plain.text ~ "'") %}
        {% set plain.text = '' %}
      {% endif %}
      {% do parts.append('char(' ~ codes[c] ~ ')') %}
    {% else %}
      {% set plain.text = plain.text ~ c %}
    {% endif %}
  {% endfor %}
  {% if plain.text %}
    {% do parts.append("'" ~ plain.text ~ "'") %}
  {% endif %}
  {% do return('concat(' ~ parts | join(', ') ~ ')') %}
{% endmacro %}


{# A text as one token, for places where Spark SQL takes no expression, such as COMMENT and TBLPROPERTIES: there it reads
   escapes also under `spark.sql.parser.escapedStringLiterals`. `substitutes` is the session's
   `spark.sql.variable.substitute`: `${x}` stands for something else. #}
{% macro constant_literal(text, substitutes=false) %}
  {% set escaped = text | replace('\\', '\\\\') | replace("'", "\\'") %}
  {% do return("'" ~ (escaped | replace('${', '\\u0024{') if substitutes else escaped) ~ "'") %}
{% endmacro %}
