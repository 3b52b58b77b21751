"""Conditions of alerts, one file each. The file's name is what `when` says.

A condition without options has `DOES`, its help, and one with options has `Options`. Each has
`plan_condition(written, where, pipelines, draft)`, which gives a `Condition` or reports problems; `written` is its `Options`, or None.
"""
