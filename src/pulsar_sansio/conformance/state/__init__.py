"""The state of a connection that the checker watches: one module for each thing of it."""
