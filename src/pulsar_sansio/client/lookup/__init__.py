"""Lookups: the broker of a topic, its partitions and the topics of a namespace, binary or over HTTP."""
