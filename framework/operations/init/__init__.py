"""First specs: of a new project, or from a topic's messages."""
