"""What reading and writing Pulsar in Spark costs, beside Spark's own source and the JVM connector."""
