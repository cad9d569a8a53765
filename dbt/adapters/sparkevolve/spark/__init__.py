"""The ways to reach Spark: a session in this process, or a Thrift server."""
