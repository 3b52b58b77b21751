"""Spark: its session, how it starts and ends, the frame of a batch's rows, and its errors by their names."""
