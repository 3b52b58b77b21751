"""Maintenance of tables, by turns with batches: small files into larger ones, and snapshots that nothing needs any more.

Guarantee: no row changes, and nothing goes that a position, a branch, a tag or a reader of the last minutes needs.
"""
