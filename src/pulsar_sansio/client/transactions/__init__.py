"""Transactions: coordinators of the cluster, and the life of each transaction."""
