"""The `$apr1$` hash of htpasswd, compared with that of openssl."""

import pytest

from pulsar_sansio.broker.security.apr1 import apr1

# openssl passwd -apr1 -salt SALT PASSWORD
KNOWN = [
    (b"geheim und lang 123456789", b"abcdefgh", "$apr1$abcdefgh$5BYw3bHB1lR/1mboUNKLk."),
    (b"", b"x", "$apr1$x$tMwYqBfQwi3FYAr0aJc8M/"),
    (b"p", b"12345678", "$apr1$12345678$XsuVNBMt1BhIqqVcUl6NI1"),
]


@pytest.mark.parametrize(("password", "salt", "expected"), KNOWN)
def test_apr1_is_that_of_openssl(password: bytes, salt: bytes, expected: str) -> None:
    assert apr1(password, salt) == expected
