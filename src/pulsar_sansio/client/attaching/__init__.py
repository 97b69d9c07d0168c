"""A producer or consumer that stays attached to the broker of its topic: refusals, redirection, backoff."""
