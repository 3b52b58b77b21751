"""Whole selects over tables: joins, groups, windows and common table expressions, read, typed and written as SQL for Spark."""
