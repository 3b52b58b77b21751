"""Followers of a table's commits, one file each. The file's name is the option of `also` that names it.

A file has `Options`, `resolve(written, pipeline, draft)`, which returns a `Follower` or reports problems, and
`follow(committed)`, which shows one step of commits (`Committed` of `framework/core/follow/committed.py`) and returns the number
of rows."""
