"""The form of a token, and the file that holds one."""

import os
from pathlib import Path

from pulsar_sansio import InvalidConfiguration, Secret

MAX_TOKEN = 64 * 1024
"""Bytes of a file with a token."""


def read_token(file: str | os.PathLike[str]) -> Secret:
    """Return the token in a file, without the white space around it.

    Raises `InvalidConfiguration`, which does not quote the file, and `OSError`.
    """
    with Path(file).open("rb") as source:
        content = source.read(MAX_TOKEN + 1)
    if len(content) > MAX_TOKEN:
        raise InvalidConfiguration(f"the file of a token has more than {MAX_TOKEN} bytes")
    return checked_token(content.strip())


def checked_token(text: str | bytes | Secret) -> Secret:
    """Return the token. Raises `InvalidConfiguration`, which does not quote it, for a text that is none."""
    secret = Secret(text)
    value = secret.reveal()
    if not value:
        raise InvalidConfiguration("a token is empty")
    if not value.isascii() or any(byte <= 32 or byte == 127 for byte in value):
        raise InvalidConfiguration("a token has spaces, control characters or non-ASCII characters")
    return secret
