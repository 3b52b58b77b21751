"""The rules by which batches are published exactly once, as plain functions, and what this machine remembers of runs and attempts."""
