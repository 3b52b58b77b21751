"""First specs: of a new project, or from what a topic's messages hold."""
