"""Parts of specs that many tests have in common."""

LAKE = """\
catalog: lake
type: sql
uri: sqlite:///lake.db
warehouse: warehouse
"""
