{# The variables of a run, given with `--vars` or in `dbt_project.yml`. #}


{% macro known_variables() %}
  {% do return(['sparkevolve_freeze_schema', 'sparkevolve_plan_only']) %}
{% endmacro %}


{# `--vars 'sparkevolve_freeze_schema: true'`: the columns of no table may change in this run. #}
{% macro freezes_schema() %}
  {% do return(sparkevolve.variable_is_on('sparkevolve_freeze_schema')) %}
{% endmacro %}


{# Whether one of them is on, for the model that runs. Whoever misspells a stop wants one. #}
{% macro variable_is_on(name) %}
  {% set noted = graph.get('sparkevolve_variables') or {} %}
  {% for value in [var(name, false), noted.get(name, false)] %}
    {% set word = value | string | trim | lower %}
    {% if word not in ['true', 'yes', 'on', '1', 'false', 'no', 'off', '0'] %}
      {% do exceptions.raise_compiler_error(
        'The variable `' ~ name ~ '` is ' ~ tojson(value) ~ ", which is neither true nor false: give it as `--vars '" ~ name
        ~ ": true'`, or leave it out. Nothing was built."
      ) %}
    {% elif word in ['true', 'yes', 'on', '1'] %}
      {% do return(true) %}
    {% endif %}
  {% endfor %}
  {% do return(false) %}
{% endmacro %}


{# A model sees the variables of its own project, a hook of this package also those under `vars: sparkevolve:`. So the hook
   at the beginning of a dbt command notes them where models find them, if this dbt lets it. #}
{% macro note_variables() %}
  {% set noted = {} %}
  {% for name in sparkevolve.known_variables() %}
    {% set value = var(name, none) %}
    {% if value is not none %}
      {% do noted.update({name: value}) %}
    {% endif %}
  {% endfor %}
  {% if graph.update is defined %}
    {% do graph.update({'sparkevolve_variables': noted}) %}
  {% endif %}
  {% set given = invocation_args_dict.get('vars') or {} %}
  {% for text in sparkevolve.unread_variables(given if given is mapping else (fromyaml(given) or {})) %}
    {% do exceptions.warn(text) %}
  {% endfor %}
{% endmacro %}


{# What to say of variables of `--vars` that look like ours and that nobody reads. #}
{% macro unread_variables(given) %}
  {% set known, found = sparkevolve.known_variables(), [] %}
  {% for name, value in given.items() if name not in known and value is not mapping %}
    {% set meant = sparkevolve.meant_variable(name) %}
    {% set is_ours = modules.re.match('sparkevolve([^a-z0-9]|$)', name | lower) or meant is not none %}
    {% if is_ours and not sparkevolve.is_read(name) %}
      {% do found.append(
        'The variable `' ~ name ~ '` has no effect: sparkevolve reads `' ~ known | join('` and `') ~ '`.'
        ~ (' Did you mean `' ~ meant ~ '`?' if meant is not none else '')
      ) %}
    {% endif %}
  {% endfor %}
  {% do return(found) %}
{% endmacro %}


{# Which of our variables a name is, but for two letters, its case or what stands between its words. #}
{% macro meant_variable(name) %}
  {% set given = name | lower | replace('_', '') | replace('-', '') %}
  {% for known in sparkevolve.known_variables() %}
    {% if sparkevolve.letters_wrong(given, known | replace('_', '')) <= 2 %}
      {% do return(known) %}
    {% endif %}
  {% endfor %}
  {% do return(none) %}
{% endmacro %}


{# How many letters are missing, too many, or wrong. #}
{% macro letters_wrong(one, other) %}
  {% set at = namespace(row=range(other | length + 1) | list) %}
  {% for a in one %}
    {% set row = [loop.index] %}
    {% for b in other %}
      {% do row.append(
        [at.row[loop.index] + 1, row[-1] + 1, at.row[loop.index0] + (0 if a == b else 1)] | min
      ) %}
    {% endfor %}
    {% set at.row = row %}
  {% endfor %}
  {% do return(at.row[-1]) %}
{% endmacro %}


{# Whether a node of the project has a name in quotes, as where a variable is read. What macros say is not known here. #}
{% macro is_read(name) %}
  {% for node in graph.nodes.values() %}
    {% set code = node.get('raw_code') or '' %}
    {% if "'" ~ name ~ "'" in code or '"' ~ name ~ '"' in code %}
      {% do return(true) %}
    {% endif %}
  {% endfor %}
  {% do return(false) %}
{% endmacro %}
