"""`needs_cryptography`: the one message for an installation without the library `cryptography`."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..model.errors import NotSupported


@contextmanager
def needs_cryptography() -> Iterator[None]:
    """Import from `cryptography` in this block. Raises `NotSupported` where it is not installed."""
    try:
        yield
    except ImportError:
        raise NotSupported(
            "encryption: install cryptography, the extra 'encryption' (pip install 'pulsar-trio[encryption]')"
        ) from None
