"""The service that keeps tables behind their topics for months: a schedule, threads that take turns, and what changes under them."""
