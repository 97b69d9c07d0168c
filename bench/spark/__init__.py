"""Measures reading and writing Pulsar in Spark, beside Spark's own source and the JVM connector."""
