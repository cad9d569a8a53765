{% materialization incremental, adapter='spark' %}
  {{ return(sparkevolve.incremental()) }}
{% endmaterialization %}
