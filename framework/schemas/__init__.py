"""What the versions of a schema hold together: their fields, merged into columns."""
