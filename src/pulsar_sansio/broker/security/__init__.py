"""Identity and permissions of the broker's clients. Nothing here serves a topic."""
