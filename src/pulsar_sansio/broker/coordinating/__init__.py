"""Transaction coordinators."""
