"""Kafka: what clusters and topics say, and messages read with and without Spark."""
