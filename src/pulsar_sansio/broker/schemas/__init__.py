"""The schemas of topics: registration, versions and compatibility."""
