"""The write modes, one file each: how a batch's rows change a table. `write: upsert` of a spec is the file `upsert.py`."""
