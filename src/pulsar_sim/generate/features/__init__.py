"""Features that only some worlds have: each function draws one, from a stream of its own."""
