"""`pulsar-trio broker` beside a standalone Apache Pulsar: start, entries, topics, connections, backlog."""
