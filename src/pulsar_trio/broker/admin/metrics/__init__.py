"""`/metrics`: what the broker measures, by the names of a Java broker, for Prometheus."""
