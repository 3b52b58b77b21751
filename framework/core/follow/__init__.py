"""Followers of a table's commits: what they have shown so far, and the next step of each."""
