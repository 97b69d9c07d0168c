"""The client that changes between two clusters, and its application."""
