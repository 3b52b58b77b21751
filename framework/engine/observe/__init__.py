"""What landed, what waits and what the next run would do. Looks, never changes."""
