"""Rates: messages and bytes per second over the last whole housekeeping interval, as stats show them.

The Java broker calculates its rates once a minute, too. Counters are only read here, so rates cost nothing
per message.
"""

from collections.abc import Iterable
from typing import Protocol


class Counted(Protocol):
    """An object with counters: messages and bytes, in and out, since it was created."""

    def counters(self) -> tuple[int, int, int, int]: ...


class Rate:
    """Values per second; 0 before the first whole interval."""

    __slots__ = ("bytes_in", "bytes_out", "messages_in", "messages_out")

    def __init__(self, messages_in: float, bytes_in: float, messages_out: float, bytes_out: float) -> None:
        self.messages_in = messages_in
        self.bytes_in = bytes_in
        self.messages_out = messages_out
        self.bytes_out = bytes_out


NONE = Rate(0.0, 0.0, 0.0, 0.0)


class Rates:
    """The counters at the end of the last interval, and the rates in it."""

    def __init__(self, now: int) -> None:
        self._since = now
        self._before: dict[Counted, tuple[int, int, int, int]] = {}
        self._rates: dict[Counted, Rate] = {}

    def of(self, each: Counted) -> Rate:
        return self._rates.get(each, NONE)

    def update(self, now: int, counted: Iterable[Counted]) -> None:
        """End an interval. Objects that are not among `counted` are discarded."""
        seconds = (now - self._since) / 1_000_000_000
        if seconds <= 0:
            return
        counters = {each: each.counters() for each in counted}
        nothing = (0, 0, 0, 0)
        self._rates = {
            each: Rate(*((new - old) / seconds for new, old in zip(after, before, strict=True)))
            for each, after in counters.items()
            if after != (before := self._before.get(each, nothing))
        }
        self._before = counters
        self._since = now
