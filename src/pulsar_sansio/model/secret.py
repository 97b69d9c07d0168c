"""`Secret`: bytes that never reach a log, a `repr`, an exception or a pickle."""

from typing import NoReturn

from .errors import InvalidConfiguration


class Secret:
    """A token, password or key. It prints as `***`; only `reveal` returns the bytes.

    Text becomes UTF-8. Two secrets are equal when their bytes are; a secret has no hash. Raises
    `InvalidConfiguration` for text that UTF-8 cannot have, and for any other type. Pickling a secret raises
    `TypeError`.
    """

    __slots__ = ("_value",)

    def __init__(self, value: "str | bytes | Secret") -> None:
        if isinstance(value, Secret):
            self._value: bytes = value._value
        elif isinstance(value, str):
            self._value = _utf8(value)
        elif isinstance(value, bytes):
            self._value = value
        else:
            raise InvalidConfiguration(f"a secret is text or bytes, not {type(value).__name__}")

    def reveal(self) -> bytes:
        """Return the secret bytes, for the one place that writes them to a peer."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled")


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # it holds the text, so it is no context of the error
        pass
    raise InvalidConfiguration("a secret has half of a surrogate pair, which is no character")
