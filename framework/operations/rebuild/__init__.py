"""A table built next to the current one and swapped in by one commit."""
