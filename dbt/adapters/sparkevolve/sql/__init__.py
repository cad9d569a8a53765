"""The text of statements: no input or output, no dbt."""
