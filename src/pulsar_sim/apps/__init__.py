"""Applications of a world: they send, receive, acknowledge, seek and close."""
