"""Parts of several formats: the id in front of a message, JSON as SQL and as Python has it, writers by a schema."""
