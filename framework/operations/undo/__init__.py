"""Undoing what batches did: a table goes back to a snapshot, or reads messages again."""
