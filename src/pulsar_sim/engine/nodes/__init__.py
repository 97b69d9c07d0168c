"""Nodes: processes of clients and brokers, and the clusters that brokers make."""
