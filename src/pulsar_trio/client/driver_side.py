"""`DriverSide`: one producer, consumer or table view as the driver sees it."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from pulsar_sansio import PulsarError

if TYPE_CHECKING:
    from .endpoint import Endpoint


class Outage:
    """The time without a connection, by trio's clock."""

    __slots__ = ("cause", "since")

    def __init__(self) -> None:
        self.cause: PulsarError | None = None
        """The reason of the last loss or failed attempt; None while connected."""
        self.since: float | None = None
        """The moment of the loss, or of the first failed attempt; None while connected."""

    def begin(self, cause: PulsarError, now: float) -> None:
        """A connection is lost, or an attempt has failed."""
        self.cause = cause
        if self.since is None:
            self.since = now

    def end(self, now: float) -> float | None:
        """Return the seconds without a connection; None when there was no loss and no failed attempt."""
        seconds = None if self.since is None else now - self.since
        self.since = self.cause = None
        return seconds


class DriverSide(NamedTuple):
    """The callbacks of an endpoint for its driver, which the application does not see."""

    endpoint: "Endpoint"
    outage: Outage
    on_output: Callable[[Any], None]
    """Receives each output that names the endpoint's handle."""
    on_crash: Callable[[PulsarError], None]
    """The machine or a task failed."""
    end: Callable[[PulsarError], None]
    """Makes every call of the endpoint raise an error from here on."""
    opened: Callable[[], Awaitable[None]]
    """Waits until the endpoint is ready."""
