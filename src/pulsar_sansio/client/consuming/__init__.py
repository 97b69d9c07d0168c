"""One consumer of one topic: from SUBSCRIBE and arriving messages to seeks and readers."""
