"""The command `pulsar-trio simulate`; the entry point is `simulate.add_parser`."""
