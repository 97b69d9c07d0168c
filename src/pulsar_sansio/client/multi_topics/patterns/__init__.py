"""The topics of a pattern: listed at an interval, and watched by a broker."""
