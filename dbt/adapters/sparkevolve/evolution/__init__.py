"""What a schema evolution is, decided without any input or output.

Nothing in this package opens a file, a catalog or a Spark session, and nothing imports dbt. PyIceberg's
``Schema`` and types serve as the vocabulary: they are plain values.
"""
