"""Pipelines on given messages or on the next ones, without a trace in the real tables."""
