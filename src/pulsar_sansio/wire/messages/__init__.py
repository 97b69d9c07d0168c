"""Messages as bytes: metadata, payloads, and the members of a batch."""
