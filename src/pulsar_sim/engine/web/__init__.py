"""The web servers of the brokers: lookups over HTTP, and what goes wrong with their answers."""
