"""The position of a consumer in its topic: where it begins, seeks, the last message, what is left to read."""
