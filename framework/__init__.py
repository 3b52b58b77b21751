"""Sluice: Kafka topics become Iceberg tables, declared in YAML."""

__version__ = "0.1.0"
