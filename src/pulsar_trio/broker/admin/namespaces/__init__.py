"""Namespaces over HTTP: their life, policies and permissions."""
