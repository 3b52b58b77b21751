"""Kafka: the state of clusters and topics, and messages read with and without Spark."""
