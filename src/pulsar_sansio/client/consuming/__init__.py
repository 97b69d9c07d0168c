"""One consumer of one topic, from SUBSCRIBE to the end, and readers."""
