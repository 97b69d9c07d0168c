"""Messages on their way from the wire into the receiver queue: checks, decoding, chunks that are joined."""
