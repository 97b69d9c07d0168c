"""Apache Pulsar as a program that never waits."""
