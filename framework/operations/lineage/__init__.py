"""Where columns come from and where they go: through all pipelines of a plan, as text and as a page."""
