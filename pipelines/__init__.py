"""What Dagster opens, and steps of one's own."""
