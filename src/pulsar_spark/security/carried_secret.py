"""`CarriedSecret`: a secret that Spark carries to the executors."""

from pulsar_sansio import Secret


class CarriedSecret:
    """A text that prints as `***`, and that Spark can pickle for the executors. `Secret` refuses that."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> Secret:
        return Secret(self._text)

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CarriedSecret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[type["CarriedSecret"], tuple[str]]:
        return CarriedSecret, (self._text,)
