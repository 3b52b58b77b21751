"""All versions of a schema together: their fields, merged into columns."""
