"""Consumers and readers for trio applications."""
