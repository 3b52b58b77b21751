"""What users run in other systems to use a table, printed from the plan: `sluice access`. Nothing here asks another system."""
