"""The definitions that Dagster opens, and a project's own steps."""
