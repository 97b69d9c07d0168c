"""Receiver queues: received entries wait there until the application takes their messages; permits."""
