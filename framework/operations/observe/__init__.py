"""The state of pipelines: rows that landed, messages that wait, and what the next run would do. Read-only."""
