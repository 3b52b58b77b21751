"""Spark: its session, how it starts and ends, the warm JVM, and its errors with codes and hints."""
