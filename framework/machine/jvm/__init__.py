"""Sluice's own decoders inside Spark: Java sources (`sluice/`), and the build of their jar.

A decoder is an SQL function of the catalog `sluice.Functions`. Its name is its description, which
`framework/messages/encoding/decoder.py` explains.
"""
