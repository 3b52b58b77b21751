"""One batch into one commit: the table, its bad rows, sweeping of dead attempts, and `sluice accept`."""
