"""Sluice's own decoders inside Spark: Java sources (`sluice/`), the build of their jar, and the descriptions that they are given.

A decoder is an SQL function of the catalog `sluice.Functions`. Its name is its description; see `description`.
"""
