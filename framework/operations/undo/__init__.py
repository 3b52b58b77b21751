"""Undoing batches: a table goes back to a snapshot, or reads messages again."""
