"""One batch into one commit: the table, its bad rows, what dead attempts left, and what a person has accepted."""
