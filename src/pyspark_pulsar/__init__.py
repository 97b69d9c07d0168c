"""Lets Spark find `format("pulsar")` by itself: it imports every top-level module named `pyspark_…` and
registers its `DefaultSource`."""

from pulsar_spark.data_source import PulsarDataSource as DefaultSource

__all__ = ["DefaultSource"]
