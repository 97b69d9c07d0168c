"""Writing rows to topics, exactly once."""
