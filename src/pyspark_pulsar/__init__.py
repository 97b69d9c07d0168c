"""Lets Spark find `format("pulsar")` by itself: it imports every top-level module named `pyspark_…` and
registers its `DefaultSource`."""
