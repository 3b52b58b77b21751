"""Rows of a batch, from messages or from rows of another table, as lazy Spark SQL."""
