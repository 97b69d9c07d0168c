"""Acknowledgements, negative acknowledgements and requests for redelivery."""
