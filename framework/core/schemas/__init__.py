"""The contents of messages, by the formats of their topics and the schemas of a registry."""
