"""Producers of one topic: from the message that the application sends to the receipt of its entry."""
