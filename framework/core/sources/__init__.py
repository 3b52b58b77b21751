"""The sources of rows: topics, tables and selects; and what happened to a table's rows between two of its snapshots."""
