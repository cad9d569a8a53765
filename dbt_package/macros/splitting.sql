{# Where the statements of a SQL text begin and end, as Spark's own parser sees it: the adapter's `sql/splitting.py` again, with
   a test of equality. Texts are gone along without `range`, which Jinja limits to a hundred thousand. #}


{# The statements of a text, each without its semicolon and the comments after it; those of nothing but comments are left
   out. A model may be long: what is between semicolons and block comments is read at once, and only where it ends is told. #}
{% macro split_statements(sql) %}
  {% set quoted = "[rR](?:'[^']*'|\"[^\"]*\")|'(?:[^'\\\\]|\\\\(?:.|\n))*'|\"(?:[^\"\\\\]|\\\\(?:.|\n))*\"|`(?:[^`]|``)*`" %}
  {% set comment = '--(?:\\\\\n|[^\r\n])*' %}
  {% set code = '(?:' ~ comment ~ '|' ~ quoted ~ '|/\\*\\+|\\w+|[^;/])*' %}
  {% set run = '(?:' ~ quoted ~ '|\\w+|[^\\s-])+' %}
  {% set runs = '((?:\\s|' ~ comment ~ ')+)|(' ~ run ~ '(?:\\s+' ~ run ~ ')*|-)' %}
  {% set found, read = [], namespace(rest=sql, at=0, start=none, end=0) %}
  {% for _ in modules.re.findall('[;/]', sql) + [''] %}
    {% if read.rest != '' %}
      {% set text = modules.re.match(code, read.rest).group(0) %}
      {% for space, other in modules.re.findall(runs, text) %}
        {% set length = space | length + other | length %}
        {% if other != '' %}
          {% set read.start = read.at if read.start is none else read.start %}
          {% set read.end = read.at + length %}
        {% endif %}
        {% set read.at = read.at + length %}
      {% endfor %}
      {% set read.rest = read.rest[text | length:] %}
      {% set read.length = 1 %}
      {% if read.rest[:1] == ';' %}
        {% if read.start is not none %}
          {% do found.append(sql[read.start:read.end]) %}
        {% endif %}
        {% set read.start = none %}
      {% elif read.rest != '' %}
        {% set ended = sparkevolve.block_comment_length(read.rest) if read.rest[:2] == '/*' else 0 %}
        {% set read.length = ended or (read.rest | length if read.rest[:2] == '/*' else 1) %}
        {# A division, or a comment that is not closed: cut off, it would take what follows it away, and Spark would not say so. #}
        {% if not ended %}
          {% set read.start = read.at if read.start is none else read.start %}
          {% set read.end = read.at + read.length %}
        {% endif %}
      {% endif %}
      {% set read.at = read.at + read.length %}
      {% set read.rest = read.rest[read.length:] %}
    {% endif %}
  {% endfor %}
  {% if read.start is not none %}
    {% do found.append(sql[read.start:read.end]) %}
  {% endif %}
  {% do return(found) %}
{% endmacro %}


{# The tokens of a SQL text as Spark sees them, each as [kind, text], without space and comments. Kinds are `quoted`, `end` (a
   semicolon), `word` (numbers too) and `other`: one character, or a comment that is not closed. #}
{% macro sql_tokens(sql) %}
  {% set found, read = [], namespace(rest=sql) %}
  {% for _ in sql %}
    {% if read.rest != '' %}
      {% set space = modules.re.match('\\s+|--(?:\\\\\n|[^\r\n])*', read.rest) %}
      {% set quoted = modules.re.match(
        "[rR](?:'[^']*'|\"[^\"]*\")|'(?:[^'\\\\]|\\\\(?:.|\n))*'|\"(?:[^\"\\\\]|\\\\(?:.|\n))*\"|`(?:[^`]|``)*`", read.rest
      ) %}
      {% set word = modules.re.match('\\w+', read.rest) %}
      {% if space %}
        {% set read.length = space.group(0) | length %}
      {% elif quoted %}
        {% do found.append(['quoted', quoted.group(0)]) %}
        {% set read.length = quoted.group(0) | length %}
      {% elif read.rest[:2] == '/*' and read.rest[2:3] != '+' %}
        {% set read.length = sparkevolve.block_comment_length(read.rest) %}
        {% if read.length == 0 %}
          {% do found.append(['other', read.rest]) %}
          {% set read.length = read.rest | length %}
        {% endif %}
      {% elif word %}
        {% do found.append(['word', word.group(0)]) %}
        {% set read.length = word.group(0) | length %}
      {% else %}
        {% do found.append(['end' if read.rest[0] == ';' else 'other', read.rest[0]]) %}
        {% set read.length = 1 %}
      {% endif %}
      {% set read.rest = read.rest[read.length:] %}
    {% endif %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# How long the block comment is that a text begins with; 0 if it does not end. Another one in it nests; a hint in it does
   not, and ends both. #}
{% macro block_comment_length(sql) %}
  {% set read = namespace(rest=sql, depth=0, length=0) %}
  {% for _ in sql %}
    {% set edge = modules.re.match('((?:.|\n)*?)(/\\*\\+|/\\*|\\*/)', read.rest) %}
    {% if not edge %}
      {% do return(0) %}
    {% endif %}
    {% set read.depth = read.depth + {'/*+': 0, '/*': 1, '*/': -1}[edge.group(2)] %}
    {% set read.length = read.length + edge.group(0) | length %}
    {% set read.rest = read.rest[edge.group(0) | length:] %}
    {% if read.depth == 0 %}
      {% do return(read.length) %}
    {% endif %}
  {% endfor %}
{% endmacro %}
