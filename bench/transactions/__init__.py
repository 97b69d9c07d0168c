"""Our transactions beside those of the Java client."""
