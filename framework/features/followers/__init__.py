"""Followers of a table's commits, one file each. The file's name is the option of `also` that names it.

A file has `Options`, `plan_follower(written, pipeline, draft)`, which returns a `Follower` or reports problems, and
`follow(committed)`, which shows one step of commits (`FollowInput` of `framework/core/follow/committed.py`) and returns the number
of rows."""
