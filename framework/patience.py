"""Seconds until something counts as not answering, not ending or stuck: waits for the same thing have one name.

Whoever watches a terminal is told soon; a batch, which fails otherwise, waits longer.
"""

CONNECTING = 2.0  # until nobody counts as listening: an address that answers at all does so in milliseconds

KAFKA = 10.0  # where nothing can be done or shown without it: a partition without a leader gets one in some seconds
KAFKA_WATCHED = 3.0  # where a person waits, and something else can be shown or asked for again
KAFKA_GLANCE = 1.5  # of what is asked again every two seconds
KAFKA_TAKES = 30.0  # until a message or a new topic counts as not taken: brokers and clients try again by themselves
TOPIC_DELETED = 15.0  # until a topic counts as not deleted: brokers do so after they have answered

REGISTRY = 3.0  # where what it said last is known, or not everything hangs on it
REGISTRY_NEEDED = 5.0  # where a command can do nothing without it
REGISTRY_FOR_BATCH = 30.0  # where a batch fails without it

STARTING = 60.0  # until a server of this machine must answer: a JVM on a busy machine takes twenty
DAGSTER_STARTING = 120.0  # until Dagster must answer: it loads the specs in several processes
ENDING = 20.0  # until processes that were asked to end are killed: Kafka writes its logs first
KILLED = 5.0  # until a killed process counts as stuck
STUCK = 600.0  # until a program that works for minutes counts as stuck
