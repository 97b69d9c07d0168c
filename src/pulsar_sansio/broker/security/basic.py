"""`BasicProvider`: users and passwords in a file of Apache's htpasswd (method "basic")."""

import re
from base64 import b64encode
from hashlib import sha1
from hmac import compare_digest

from ...model.errors import AuthenticationError, InvalidConfiguration
from ...model.secret import Secret
from .apr1 import apr1
from .provider import Identity

MAX_PASSWORD = 1024
"""Bytes of the longest password: the hash of a longer one would cost too much."""

APR1 = re.compile(r"\$apr1\$[./0-9A-Za-z]{1,8}\$[./0-9A-Za-z]{22}")
SHA = re.compile(r"\{SHA\}[+/0-9A-Za-z]{27}=")

REFUSED = "unknown user or invalid password"

NO_PASSWORD = {
    "$apr1$": Secret("$apr1$........$......................"),
    "{SHA}": Secret("{SHA}AAAAAAAAAAAAAAAAAAAAAAAAAAA="),
}
"""Kind of hash -> the hash to compare with where a user has none of this kind."""


class BasicProvider:
    """`htpasswd`: the text of the file, one `user:hash` in each line. The role is the user's name.

    The hashes are `$apr1$` (`htpasswd -m`) and `{SHA}` (`htpasswd -s`). Raises `InvalidConfiguration` for a
    line with another hash, by its number.

    Every password is hashed once in each kind that the file has. So the time of a refusal does not tell if
    the user is known.
    """

    __slots__ = ("_kinds", "_users")

    method = "basic"

    def __init__(self, htpasswd: str | bytes | Secret) -> None:
        try:
            text = Secret(htpasswd).reveal().decode()
        except UnicodeDecodeError:
            raise InvalidConfiguration("htpasswd: the text is not UTF-8") from None
        self._users: dict[str, dict[str, Secret]] = {}
        for number, line in enumerate(text.splitlines(), 1):
            line = line.strip()
            if line and not line.startswith("#"):
                user, kind, hashed = _entry(number, line)
                self._users[user] = {kind: Secret(hashed)}
        self._kinds = [kind for kind in NO_PASSWORD if any(kind in each for each in self._users.values())]

    def authenticate(self, data: bytes, certificate: str | None) -> Identity:
        user, _, password = data.partition(b":")
        if len(password) > MAX_PASSWORD:
            raise AuthenticationError(f"a password of more than {MAX_PASSWORD} bytes")
        name = user.decode(errors="replace")
        hashes = self._users.get(name, {})
        proven = False
        for kind in self._kinds:
            stored = hashes.get(kind, NO_PASSWORD[kind]).reveal()
            proven |= compare_digest(_hashed(password, stored), stored) and kind in hashes
        if not proven:
            raise AuthenticationError(REFUSED)
        return Identity(name)

    def __repr__(self) -> str:
        return f"BasicProvider({len(self._users)} users)"


def _entry(number: int, line: str) -> tuple[str, str, str]:
    """Return the user, the kind of the hash and the hash."""
    user, colon, hashed = line.partition(":")
    if not colon or not user:
        raise InvalidConfiguration(f"htpasswd: line {number} is not user:hash")
    if hashed.startswith(("$2a$", "$2b$", "$2y$")):
        raise InvalidConfiguration(
            f"htpasswd: line {number}: bcrypt is not supported; use htpasswd -m ($apr1$) or -s ({{SHA}})"
        )
    for kind, pattern in (("$apr1$", APR1), ("{SHA}", SHA)):
        if pattern.fullmatch(hashed):
            return user, kind, hashed
    raise InvalidConfiguration(
        f"htpasswd: line {number}: a hash by htpasswd -m ($apr1$) or -s ({{SHA}}) is needed"
    )


def _hashed(password: bytes, stored: bytes) -> bytes:
    """Hash a password as the stored one is."""
    if stored.startswith(b"{SHA}"):
        return b"{SHA}" + b64encode(sha1(password, usedforsecurity=False).digest())
    return apr1(password, stored.split(b"$")[2]).encode()
