"""What will run, made of what was written."""
