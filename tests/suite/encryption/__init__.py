"""End-to-end encryption against both brokers, and with the clients of other languages."""
