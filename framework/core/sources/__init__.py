"""The change feed: what happened to a table's rows between two of its snapshots, and pipelines that read it."""
