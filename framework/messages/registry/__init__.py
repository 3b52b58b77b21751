"""Schema registries: the schemas that messages are written with."""
