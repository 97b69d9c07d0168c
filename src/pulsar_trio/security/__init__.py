"""TLS and credentials: what a client shows to brokers, and what it expects of them."""
