"""Several parts as one: one consumer of several topics, one producer over the partitions of a topic."""
