"""What messages hold, by the formats of their topics and the schemas of a registry."""
