"""The client for trio applications: its driver, options, table views and log records."""
