"""The official client (`pulsar-client` from PyPI, C++ inside) as the other side of a conversation."""
