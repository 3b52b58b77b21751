"""Followers of a table's commits: what of it they have shown, and the next step of each."""
