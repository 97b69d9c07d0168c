"""Dead-letter and retry-letter topics: the producers that write copies of messages to them."""
