"""Identity of a client: the credentials that a connection asks the driver for."""
