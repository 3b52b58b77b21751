"""Files of the rows of tables in windows of time: no JVM."""
