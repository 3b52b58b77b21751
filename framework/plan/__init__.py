"""Turn documents into a plan."""
