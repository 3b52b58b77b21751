"""Maintenance of tables, between batches: small files become larger ones, and snapshots that nothing needs any more are deleted.

Guarantee: no row changes, and nothing is deleted that a position, a branch, a tag or a reader of the last minutes needs.
"""
