"""Iceberg tables: their state, with Spark's JVM and without it, and each change of one as one commit."""
