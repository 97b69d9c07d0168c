"""TLS and credentials of a query, on the driver and on the executors."""
