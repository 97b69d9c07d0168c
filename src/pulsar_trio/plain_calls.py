"""The result of calls that do not wait: it stands for None, and raises an error if a program awaits it."""

from collections.abc import Generator
from typing import Any

from .errors import NotAwaitable


class PlainCall:
    """Stands for None as the result of a plain call, such as `acknowledge`.

    Awaiting it raises `NotAwaitable` with a sentence. Awaiting None would only say that a NoneType cannot be
    awaited.
    """

    __slots__ = ("_sentence",)

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    def __await__(self) -> Generator[Any, Any, None]:
        raise NotAwaitable(self._sentence)

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "None"


def _plain(name: str, waits: str) -> Any:
    return PlainCall(f"{name} is a plain call, without await: {waits}")


_ACKNOWLEDGING = "write consumer.{0}(…); await consumer.flush() waits for the broker"

ACKNOWLEDGE: None = _plain("acknowledge", _ACKNOWLEDGING.format("acknowledge"))
ACKNOWLEDGE_CUMULATIVE: None = _plain(
    "acknowledge_cumulative", _ACKNOWLEDGING.format("acknowledge_cumulative")
)
NEGATIVE_ACKNOWLEDGE: None = _plain("negative_acknowledge", "write consumer.negative_acknowledge(…)")
REDELIVER_UNACKNOWLEDGED: None = _plain(
    "redeliver_unacknowledged", "write consumer.redeliver_unacknowledged()"
)
PAUSE: None = _plain("pause", "write consumer.pause()")
RESUME: None = _plain("resume", "write consumer.resume()")
UPDATE_SERVICE_URL: None = _plain("update_service_url", "write client.update_service_url(url)")
