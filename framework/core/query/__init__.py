"""One select over tables, answered by DuckDB."""
