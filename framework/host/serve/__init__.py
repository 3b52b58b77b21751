"""A catalog shown to readers as an Iceberg REST catalog that nobody can write to: one small server."""
