"""The `$apr1$` hash of Apache's htpasswd: MD5, a thousand times."""

from hashlib import md5

ALPHABET = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

ORDER = ((0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5))
"""The bytes of the digest that make four characters each; byte 11 makes the last two."""


def apr1(password: bytes, salt: bytes) -> str:
    """Return `$apr1$SALT$HASH`. `salt`: at most 8 characters count."""
    salt = salt[:8]
    inner = _md5(password + salt + password)
    size = len(password)
    text = password + b"$apr1$" + salt + (inner * (size // 16 + 1))[:size]
    bit = size
    while bit:
        text += b"\0" if bit & 1 else password[:1]
        bit >>= 1
    digest = _md5(text)
    for turn in range(1000):
        step = password if turn & 1 else digest
        if turn % 3:
            step += salt
        if turn % 7:
            step += password
        digest = _md5(step + (digest if turn & 1 else password))
    characters = [_characters((digest[a] << 16) | (digest[b] << 8) | digest[c], 4) for a, b, c in ORDER]
    return f"$apr1${salt.decode()}${''.join(characters)}{_characters(digest[11], 2)}"


def _md5(data: bytes) -> bytes:
    return md5(data, usedforsecurity=False).digest()


def _characters(value: int, count: int) -> str:
    return "".join(ALPHABET[value >> 6 * place & 63] for place in range(count))
