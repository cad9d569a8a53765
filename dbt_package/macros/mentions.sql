{# Which columns a condition names that a user has written, as far as its text tells: the adapter's `sql/mentions.py` again,
   with a test of equality. #}


{# Each place in which a condition names a column of the table, or a field in one: its folded `path`, and what is `asked` of
   it, `null` or `not null`, where the text asks only whether it is. What stands behind the alias of the batch is none, nor
   are strings, comments, functions, types and the units of intervals. A name without an alias counts as one of the table; an
   index ends the path. #}
{% macro mentions(sql) %}
  {% set none_here = ['', ''] %}
  {# So that what is around a name is always there. #}
  {% set parts = [none_here, none_here] + sparkevolve.sql_tokens(sql)
    + [none_here, none_here, none_here, none_here] %}
  {% set found, at = [], namespace(end=0) %}
  {# Without `range`, which Jinja limits to a hundred thousand. #}
  {% for part in parts %}
    {% set start = loop.index0 %}
    {% if start >= at.end and sparkevolve.is_sql_name(part) and parts[start - 1][1] != '.' %}
      {% set at.end = start + 1 %}
      {% set path = [sparkevolve.sql_name(parts[start][1])] %}
      {% for _ in parts[start:start + 128] %}
        {% if parts[at.end][1] == '.' and sparkevolve.is_sql_name(parts[at.end + 1], true) %}
          {% do path.append(sparkevolve.sql_name(parts[at.end + 1][1])) %}
          {% set at.end = at.end + 2 %}
        {% endif %}
      {% endfor %}
      {% set is_qualified = path | length > 1 and path[0] in ['dbt_internal_source', 'dbt_internal_dest'] %}
      {% if sparkevolve.is_sql_column(parts, start, at.end)
            and not (is_qualified and path[0] == 'dbt_internal_source') %}
        {% do found.append({
          'path': path[1:] if is_qualified else path, 'asked': sparkevolve.asked_of(parts, start, at.end)
        }) %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# Between double quotes is a string, but for `spark.sql.ansi.doubleQuotedIdentifiers`; none follows a dot. #}
{% macro is_sql_name(part, behind_dot=false) %}
  {% do return(
    (part[0] == 'word' and not sparkevolve.is_number(part[1])) or part[1][:1] == '`'
    or (behind_dot and part[0] == 'quoted' and part[1][0] == '"')
  ) %}
{% endmacro %}


{% macro is_number(text) %}
  {% do return(modules.re.match('[0-9]+$', text) is not none) %}
{% endmacro %}


{% macro sql_name(text) %}
  {% if text[0] in ['`', '"'] %}
    {% do return(text[1:-1] | replace(text[0] ~ text[0], text[0]) | lower) %}
  {% endif %}
  {% do return(text | lower) %}
{% endmacro %}


{# Whether a name, or several with dots between them, can be a column's. #}
{% macro is_sql_column(parts, start, end) %}
  {% set before, after = parts[start - 1], parts[end] %}
  {# A function; `date'2024-01-01'`. #}
  {% if after[1] == '('
        or (after[0] == 'quoted' and after[1][0] in ["'", '"'] and parts[start][1][0] != '`') %}
    {% do return(false) %}
  {% endif %}
  {# `cast(x as date)`, `x::date`; `interval 1 day`, whose unit no column can be in the place of. #}
  {% if before[1] | lower == 'as' or (before[1] == ':' and parts[start - 2][1] == ':') %}
    {% do return(false) %}
  {% endif %}
  {% if sparkevolve.is_number(before[1]) or (before[0] == 'quoted' and before[1][0] != '`') %}
    {% do return(false) %}
  {% endif %}
  {# `interval '1 2' day to hour` #}
  {% if before[1] | lower == 'to' and sparkevolve.is_sql_name(parts[start - 2]) %}
    {% do return(false) %}
  {% endif %}
  {% if before[1] == '(' %}
    {% set function = parts[start - 2][1] | lower %}
    {% if function == 'extract' and after[1] | lower == 'from' %}
      {% do return(false) %}
    {% endif %}
    {# The first of three arguments is the name of a unit. #}
    {% set with_unit = ['dateadd', 'date_add', 'datediff', 'date_diff', 'timestampadd', 'timestampdiff'] %}
    {% if function in with_unit and after[1] == ',' and sparkevolve.count_arguments(parts, start) == 3 %}
      {% do return(false) %}
    {% endif %}
  {% endif %}
  {% do return(true) %}
{% endmacro %}


{# How many arguments there are from the first one on. #}
{% macro count_arguments(parts, start) %}
  {% set read = namespace(depth=0, number=1) %}
  {% for part in parts[start:] %}
    {% if part[1] in ['(', '['] %}
      {% set read.depth = read.depth + 1 %}
    {% elif part[1] in [')', ']'] %}
      {% set read.depth = read.depth - 1 %}
    {% elif read.depth == 0 and part[1] == ',' %}
      {% set read.number = read.number + 1 %}
    {% endif %}
    {% if read.depth < 0 %}
      {% do return(read.number) %}
    {% endif %}
  {% endfor %}
  {% do return(read.number) %}
{% endmacro %}


{% macro asked_of(parts, start, end) %}
  {% set after = [parts[end][1] | lower, parts[end + 1][1] | lower, parts[end + 2][1] | lower] %}
  {% if after[:2] == ['is', 'null'] %}
    {% do return('null') %}
  {% elif after == ['is', 'not', 'null'] %}
    {% do return('not null') %}
  {% elif parts[start - 1][1] == '(' and after[0] == ')' %}
    {% do return({'isnull': 'null', 'isnotnull': 'not null'}.get(parts[start - 2][1] | lower, '')) %}
  {% endif %}
  {% do return('') %}
{% endmacro %}


{# The conditions of a model, as the planner has them: those that rows of the table have to meet to be found. #}
{% macro conditions_of(texts) %}
  {% set found = [] %}
  {% for text in texts %}
    {% do found.append({'text': text, 'mentions': sparkevolve.mentions(text)}) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# The condition that would find no row any more if a field were replaced; none if there is none. `retired` is what the old
   one is called from now on. #}
{% macro needing_condition(planner, parent, name, retired) %}
  {% if not planner.policy.conditions %}
    {% do return(none) %}
  {% endif %}
  {% set levels, at = [], namespace(type=sparkevolve.struct_type(planner.table)) %}
  {% for level in parent.names %}
    {# What is in a list or a map directly has no name of its own. #}
    {% if at.type.kind == 'struct' %}
      {% do levels.append(level | lower) %}
    {% endif %}
    {% set at.type = (at.type.fields | selectattr('name', 'equalto', level) | first).type %}
  {% endfor %}
  {% for condition in planner.policy.conditions %}
    {% if sparkevolve.condition_needs(condition, levels + [name | lower], levels + [retired | lower]) %}
      {% do return(condition) %}
    {% endif %}
  {% endfor %}
  {% do return(none) %}
{% endmacro %}


{# Whether rows with NULL at a path would not be found any more by a condition. Not so if it asks for NULL there, or names what
   the old one is called from now on, too: then it was written for both. #}
{% macro condition_needs(condition, path, of_old) %}
  {% set found = namespace(about=false, is_for_both=false) %}
  {% for mention in condition.mentions %}
    {% set length = mention.path | length %}
    {% if mention.path[:path | length] == path %}
      {% set found.about = true %}
      {% if mention.asked == 'null' %}
        {% set found.is_for_both = true %}
      {% endif %}
    {% elif mention.path == path[:length] and not mention.asked %}
      {% set found.about = true %}
    {% endif %}
    {% if mention.path[:of_old | length] == of_old %}
      {% set found.is_for_both = true %}
    {% endif %}
  {% endfor %}
  {% do return(found.about and not found.is_for_both) %}
{% endmacro %}
