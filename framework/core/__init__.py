"""A plan and an offset range become rows, and those one commit."""
