{# Which columns a condition names that a user has written, as far as its text tells: the adapter's `sql/mentions.py` again,
   with a test of equality. #}


{# Each place in which a condition names a column of the table, or a field in one: its folded `path`, what is `asked` of it,
   `null` or `not null`, where the text asks only whether it is, and `or_null`, the columns and fields of which any that is
   NULL makes true what this stands in, and all that is said there: `… OR x IS NULL`. It `is_of_table` where it can be
   nothing else, unlike a bare name in a text with a query, or one that may be a word of SQL. What stands behind the alias of the batch is none, nor
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
          'path': path[1:] if is_qualified else path, 'asked': sparkevolve.asked_of(parts, start, at.end),
          'start': start, 'end': at.end, 'or_null': [], 'is_qualified': is_qualified
        }) %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {% do sparkevolve.find_alternatives(parts, found) %}
  {% set read = parts[2:-4] %}
  {% set is_alone = not sparkevolve.has_query(read) and not sparkevolve.has_parameters(read) %}
  {% set in_types = sparkevolve.tokens_in_types(parts) %}
  {% for mention in found %}
    {% set may_be_word = mention.start in in_types or sparkevolve.may_be_sql_word(parts[mention.start]) %}
    {% do mention.update({'is_of_table': mention.is_qualified or (is_alone and not may_be_word)}) %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# Whether there is a query in a text, in which names may be those of other tables. `FROM` may begin one, and is within a few
   functions, too (`extract(year FROM x)`). #}
{% macro has_query(parts) %}
  {% set read = namespace(before='(', found=false) %}
  {% for part in parts %}
    {% set word = part[1] | lower if part[0] == 'word' else '' %}
    {% if word == 'select' or (word == 'from' and read.before == '(') %}
      {% set read.found = true %}
    {% endif %}
    {% set read.before = part[1] %}
  {% endfor %}
  {% do return(read.found) %}
{% endmacro %}


{# Whether there is a query in a text for sure: `select` may be the name of a column, too. #}
{% macro has_select(sql) %}
  {# So that what is around a word is always there. #}
  {% set edge = ['other', ''] %}
  {% set parts, read = [edge, edge, edge] + sparkevolve.sql_tokens(sql) + [edge], namespace(found=false) %}
  {% for part in parts[3:-1] %}
    {% set at = loop.index0 + 3 %}
    {# An argument of a function is none. #}
    {% if part[1] | lower == 'select' and parts[at - 1][1] == '('
          and parts[at + 1][1] not in ['', ')', ']', ',', '.', '=', '<', '>', '!', '|', '&', '/', '%', ':']
          and (parts[at - 2][1] | lower == 'as' or not sparkevolve.ends_operand(parts, at - 2)) %}
      {% set read.found = true %}
    {% endif %}
  {% endfor %}
  {% do return(read.found) %}
{% endmacro %}


{# Whether a name stands anywhere in a text, as that of a column, a table or anything else. #}
{% macro names_word(sql, name) %}
  {% set read = namespace(found=false) %}
  {% for part in sparkevolve.sql_tokens(sql) %}
    {% if sparkevolve.is_sql_name(part, true) and sparkevolve.sql_name(part[1]) == name | lower %}
      {% set read.found = true %}
    {% endif %}
  {% endfor %}
  {% do return(read.found) %}
{% endmacro %}


{# Whether there is a function in a text whose parameters have names: `x -> x > 1`. #}
{% macro has_parameters(parts) %}
  {% set read = namespace(before='', found=false) %}
  {% for part in parts %}
    {% if read.before == '-' and part[1] == '>' %}
      {% set read.found = true %}
    {% endif %}
    {% set read.before = part[1] %}
  {% endfor %}
  {% do return(read.found) %}
{% endmacro %}


{# Whether a name without an alias may be a word of SQL. As the end of a CASE, `end` is no mention. #}
{% macro may_be_sql_word(part) %}
  {% do return(part[1] | lower in [
    'all', 'and', 'any', 'between', 'case', 'cast', 'distinct', 'div', 'else', 'escape', 'exists', 'false', 'from',
    'ilike', 'in', 'interval', 'is', 'like', 'not', 'null', 'or', 'regexp', 'rlike', 'some', 'then', 'true', 'when'
  ]) %}
{% endmacro %}


{# Where the tokens are that stand inside of types: `map<string, struct<x: date>>`. #}
{% macro tokens_in_types(parts) %}
  {% set found, read = {}, namespace(before='', word='', depth=0) %}
  {% for part in parts %}
    {% set begins = read.word in ['array', 'map', 'struct'] and read.before in ['as', ':'] %}
    {% if part[1] == '<' and (read.depth or begins) %}
      {% set read.depth = read.depth + 1 %}
    {% elif part[1] == '>' and read.depth %}
      {% set read.depth = read.depth - 1 %}
    {% endif %}
    {% if read.depth %}
      {% do found.update({loop.index0: true}) %}
    {% endif %}
    {% set read.before = read.word %}
    {% set read.word = part[1] | lower %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# The path by which an expression names a field of a table, or one that is to be added: without levels of lists and maps. #}
{% macro named_by_sql(fields, names) %}
  {% set path, at = [], namespace(type=sparkevolve.struct_type(fields)) %}
  {% for name in names[:-1] %}
    {# What is in a list or a map directly has no name of its own. #}
    {% if at.type.kind == 'struct' %}
      {% do path.append(name | lower) %}
    {% endif %}
    {% set found = at.type.fields | selectattr('name', 'equalto', name) | map(attribute='type') | list %}
    {% set at.type = found[0] if found else sparkevolve.struct_type([]) %}
  {% endfor %}
  {% do return(path + [names[-1] | lower]) %}
{% endmacro %}


{# Find out for each mention whose NULL makes true what it stands in, as far as ANDs and ORs tell: its `or_null`. A group is
   what stands between two parentheses, or the whole text, with the `branches` between its ORs, the `links` between the ANDs
   of the branch, and of the operand that is being read where it begins, how many tokens and groups are in it, the last group,
   and how many BETWEENs wait for their AND. What has been read is a node: what was `found` in it, and of what NULL makes it
   true. #}
{% macro find_alternatives(parts, found) %}
  {% set starts = {} %}
  {% for mention in found %}
    {% do starts.update({mention.start: mention}) %}
  {% endfor %}
  {% set end, closes = parts | length - 4, {'(': ')', '[': ']', 'case': 'end'} %}
  {% set read = namespace(groups=[sparkevolve.begin_group('', 1)]) %}
  {% for part in parts[2:end] %}
    {# Without a group it has more ends than beginnings, since `CASE` or `END` may be a name: then nothing is known. #}
    {% if read.groups %}
      {% set at, group = loop.index0 + 2, read.groups[-1] %}
      {% set word = part[1] | lower if parts[loop.index0 + 1][1] != '.' else '' %}
      {% set word = '' if word == 'end' and at in starts else word %}
      {% if at in starts %}
        {% do group.found.append(starts[at]) %}
      {% endif %}
      {% if word in closes %}
        {% set read.groups = read.groups + [sparkevolve.begin_group(word, at)] %}
      {% elif word in [')', ']', 'end'] %}
        {% if closes.get(group.opened_by) == word %}
          {% set node = sparkevolve.end_group(group, at) %}
          {% set read.groups = read.groups[:-1] %}
          {# A query has conditions of its own. #}
          {% set is_query = parts[group.start + 1][1] | lower in ['select', 'from', 'with', 'values', 'table'] %}
          {% do read.groups[-1].found.extend(node.found) %}
          {% do read.groups[-1].update({
            'size': read.groups[-1].size + 1, 'has_group': true,
            'inner': node if word == ')' and not is_query else none
          }) %}
        {% else %}
          {% set read.groups = [] %}
        {% endif %}
      {% elif word == 'or' %}
        {% do sparkevolve.end_branch(group, at) %}
        {% do sparkevolve.begin_operand(group, at + 1) %}
      {% elif word == 'and' and not group.betweens %}
        {% do sparkevolve.end_operand(group, at) %}
        {% do sparkevolve.begin_operand(group, at + 1) %}
      {% else %}
        {% set waiting = {'between': 1, 'and': -1}.get(word, 0) %}
        {% do group.update({'size': group.size + 1, 'betweens': group.betweens + waiting}) %}
      {% endif %}
    {% endif %}
  {% endfor %}
  {% if read.groups | length == 1 %}
    {% do sparkevolve.end_group(read.groups[0], end) %}
  {% else %}
    {% for mention in found %}
      {% do mention.update({'or_null': []}) %}
    {% endfor %}
  {% endif %}
{% endmacro %}


{% macro begin_group(opened_by, start) %}
  {% set group = {'opened_by': opened_by, 'start': start, 'branches': [], 'links': []} %}
  {% do sparkevolve.begin_operand(group, start + 1) %}
  {% do return(group) %}
{% endmacro %}


{% macro begin_operand(group, start) %}
  {% do group.update({
    'found': [], 'first': start, 'size': 0, 'has_group': false, 'inner': none, 'betweens': 0
  }) %}
{% endmacro %}


{% macro end_operand(group, end) %}
  {% if group.size == 1 and group.inner is not none %}
    {% do group.links.append(group.inner) %}
  {% else %}
    {% set nulls = [] %}
    {% for mention in group.found if mention.asked == 'null' %}
      {# `isnull(…)`, or `… IS NULL`. #}
      {% set whole = [mention.start - 2, mention.end + 1] if group.has_group else [mention.start, mention.end + 2] %}
      {% if whole == [group.first, end] %}
        {% do nulls.append(mention.path) %}
      {% endif %}
    {% endfor %}
    {% for mention in group.found %}
      {# Of an OR in it nothing is known, since there may be a NOT around that. #}
      {% do mention.update({'or_null': nulls | list}) %}
    {% endfor %}
    {% do group.links.append({'found': group.found, 'true_if_null': nulls}) %}
  {% endif %}
{% endmacro %}


{% macro end_branch(group, end) %}
  {% do sparkevolve.end_operand(group, end) %}
  {% if group.links | length == 1 %}
    {% do group.branches.append(group.links[0]) %}
  {% else %}
    {% set found = [] %}
    {% for link in group.links %}
      {% do found.extend(link.found) %}
    {% endfor %}
    {% do group.branches.append({'found': found, 'true_if_null': []}) %}
  {% endif %}
  {% do group.update({'links': []}) %}
{% endmacro %}


{% macro end_group(group, end) %}
  {% do sparkevolve.end_branch(group, end) %}
  {% set node = {'found': [], 'true_if_null': []} %}
  {% for branch in group.branches %}
    {% do node.found.extend(branch.found) %}
    {% do node.true_if_null.extend(branch.true_if_null) %}
  {% endfor %}
  {% if group.branches | length > 1 %}
    {% for mention in node.found %}
      {% do mention.or_null.extend(node.true_if_null) %}
    {% endfor %}
  {% endif %}
  {% do return(node) %}
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
  {# `case when x then y end` #}
  {% if parts[start][1] | lower == 'end' and end == start + 1 and sparkevolve.ends_operand(parts, start - 1) %}
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


{# Whether something has ended for sure behind which no column may stand without an operator. #}
{% macro ends_operand(parts, at) %}
  {% set before_operands = [
    'all', 'and', 'any', 'between', 'both', 'by', 'case', 'cast', 'distinct', 'div', 'else', 'escape', 'exists', 'for', 'from',
    'having', 'ilike', 'in', 'interval', 'is', 'join', 'leading', 'like', 'limit', 'not', 'offset', 'on', 'or', 'over',
    'placing', 'regexp', 'rlike', 'select', 'some', 'then', 'trailing', 'using', 'when', 'where', 'with'
  ] %}
  {% set kind, text = parts[at] %}
  {% if kind == 'word' %}
    {% do return(text | lower not in before_operands or parts[at - 1][1] == '.') %}
  {% endif %}
  {% do return(kind == 'quoted' or text in [')', ']']) %}
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


{# The condition that may not find some rows any more if a field were replaced; none if there is none. `retired` is what the
   old one is called from now on. #}
{% macro needing_condition(planner, parent, name, retired) %}
  {% if not planner.policy.conditions %}
    {% do return(none) %}
  {% endif %}
  {% set path = sparkevolve.named_by_sql(planner.table, parent.names + [name]) %}
  {% set is_null = path | length == parent.names | length + 1 %}
  {% for condition in planner.policy.conditions %}
    {% if sparkevolve.condition_needs(condition, path, path[:-1] + [retired | lower], is_null) %}
      {% do return(dict(condition, is_inside=not is_null)) %}
    {% endif %}
  {% endfor %}
  {% do return(none) %}
{% endmacro %}


{# Whether rows may not be found any more by a condition whose value at a path is replaced. Not so if it holds where that is
   NULL, or names what the old one is called from now on, too: then it was written for both. What is in a list or a map does
   not read as NULL: an expression has the values of all elements. #}
{% macro condition_needs(condition, path, of_old, is_null) %}
  {% set length, found = path | length, namespace(about=false, needs=false, is_for_both=false) %}
  {% for mention in condition.mentions %}
    {% if mention.path[:length] == path or (mention.path == path[:mention.path | length] and not mention.asked) %}
      {% set found.about = true %}
      {% set spared = namespace(any=false) %}
      {% for null in mention.or_null if is_null and null[:length] == path %}
        {% set spared.any = true %}
      {% endfor %}
      {% if not spared.any %}
        {% set found.needs = true %}
      {% endif %}
    {% endif %}
    {% if mention.path[:of_old | length] == of_old %}
      {% set found.is_for_both = true %}
    {% endif %}
  {% endfor %}
  {# A name under `spark.sql.ansi.doubleQuotedIdentifiers`, else a text: rows may not be found. #}
  {% set is_quoted = not found.about and '"' ~ path[0] ~ '"' in condition.text | lower %}
  {% do return((found.needs or is_quoted) and not found.is_for_both) %}
{% endmacro %}
