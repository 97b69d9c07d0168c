"""The form of a token."""

from pulsar_sansio import InvalidConfiguration, Secret


def checked_token(text: str | bytes | Secret) -> Secret:
    """Return the token. Raises `InvalidConfiguration`, which does not quote it, for a text that is none."""
    secret = Secret(text)
    value = secret.reveal()
    if not value:
        raise InvalidConfiguration("a token is empty")
    if not value.isascii() or any(byte <= 32 or byte == 127 for byte in value):
        raise InvalidConfiguration("a token has spaces, control characters or non-ASCII characters")
    return secret
