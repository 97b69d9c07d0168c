"""One producer for all partitions of a topic: routing, a producer for each partition, growth."""
