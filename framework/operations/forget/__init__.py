"""Forgetting a person: rows, bad rows, state, older snapshots and exported files, and that no batch brings them back."""
