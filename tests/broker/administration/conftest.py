"""Every test of this room runs twice, see `reading_back`."""

from tests.broker.reading_back import reads_back

__all__ = ["reads_back"]
