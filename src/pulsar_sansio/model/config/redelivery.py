"""What a consumer is told about messages that have to come again: how long they wait for it."""

from dataclasses import dataclass

from ..errors import InvalidConfiguration
from .checks import duration, seconds_to_ns


@dataclass(frozen=True, slots=True)
class RedeliveryBackoff:
    """A delay that grows with the number of deliveries: `min_delay` for a message that was delivered once,
    then `multiplier` times more with each further delivery, up to `max_delay`.

    Delays in seconds; `multiplier` above 1. The Java client's `MultiplierRedeliveryBackoff`.
    """

    min_delay: float = 10.0
    max_delay: float = 600.0
    multiplier: float = 2.0

    def __post_init__(self) -> None:
        duration("backoff.min_delay", self.min_delay)
        duration("backoff.max_delay", self.max_delay, minimum=self.min_delay)
        multiplier: object = self.multiplier
        if (
            isinstance(multiplier, bool)
            or not isinstance(multiplier, int | float)
            or not 1 < multiplier <= 1_000_000
        ):
            raise InvalidConfiguration(
                f"backoff.multiplier: a number above 1 and up to 1000000, not {multiplier!r}"
            )

    def delays(self) -> tuple[int, ...]:
        """Nanoseconds by redelivery count; the last one is that of all greater counts."""
        delays: list[int] = []
        delay = float(self.min_delay)
        while 0 < delay < self.max_delay and len(delays) < 10_000:
            delays.append(seconds_to_ns(delay))
            delay = self.min_delay * self.multiplier ** len(delays)
        return (*delays, seconds_to_ns(min(delay, self.max_delay) if self.min_delay else 0.0))
