"""The version of dbt-sparkevolve, stated only here."""

version = "0.1.0"
