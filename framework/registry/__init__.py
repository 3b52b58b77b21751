"""A schema registry: which schemas messages are written by."""
