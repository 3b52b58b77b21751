"""The protocol of batches as a small state machine: a catalog, a topic and attempts that stop, die and wake at every step.

What is decided is asked of `framework.core.rules.protocol` and `framework.core.rules.refusals`, as the engine asks; only the order of
the calls is written here once more, as `attempt.py`, `batch.py`, `bad_rows.py`, `sweep.py`, `tables.py` and `accept.py` have it.
"""
