"""Commands for other systems that use a table, printed from the plan: `sluice access`. Nothing here asks another system."""
