"""One batch into one commit: the table, its bad rows, rows that wait, and the sweep of dead attempts."""
