"""The producers of a topic, and the checks of each message that they publish."""
