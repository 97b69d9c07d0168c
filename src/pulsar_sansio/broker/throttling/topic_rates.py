"""`TopicRates`: the limiters of one topic, made from its policies (TENANT-05)."""

from typing import TYPE_CHECKING

from ...core.context import Context
from ...model.errors import NotAllowed
from ..outputs import Output
from ..policies import MessageRate, Policies
from .rate_limiter import RateLimiter
from .subscribe_throttle import ConsumerKey, SubscribeThrottle

if TYPE_CHECKING:
    from ..serving.connection import Connection


def limiter_for(
    context: Context[Output],
    rate: MessageRate | None,
    present: RateLimiter | None,
    published: tuple[int, int] = (0, 0),
) -> RateLimiter | None:
    """Return the present limiter where it has this rate, else a new one; None where nothing is limited.

    `published`: messages and bytes of the topic's producers in each second.
    """
    if rate is None or not rate.limits:
        return None
    return present if present is not None and present.rate == rate else RateLimiter(context, rate, published)


class TopicRates:
    """`publishing`, `dispatching` and `subscribing` are None where the policies set no rate.

    `of_broker`: the limiter of all producers of the broker, which topics share.
    """

    def __init__(
        self, context: Context[Output], policies: Policies, of_broker: RateLimiter | None = None
    ) -> None:
        self._context = context
        self._of_broker = of_broker
        self.publishing: RateLimiter | None = None
        self.dispatching: RateLimiter | None = None
        self.subscribing: SubscribeThrottle | None = None
        self.limits_publishing = False
        """True when a producer may have to wait."""
        self.times_limited = 0
        """The number of times that a connection had to wait for the publish rate."""
        self.published = (0, 0)
        """Messages and bytes of producers in each second of the last housekeeping interval."""
        self.apply(policies)

    def apply(self, policies: Policies) -> None:
        """Use the rates of these policies. Limiters whose rates are unchanged keep their tokens.

        Connections go on when their limiter changes; subscriptions ask for their new limiters by themselves.
        """
        before = self.publishing
        self.publishing = limiter_for(self._context, policies.publish_rate, before)
        if before is not None and before is not self.publishing:
            before.close()
        self.limits_publishing = self.publishing is not None or self._of_broker is not None
        self.dispatching = limiter_for(
            self._context, policies.dispatch_rate, self.dispatching, self.published
        )
        rate = policies.subscribe_rate
        if rate is None:
            self.subscribing = None
        elif self.subscribing is None or self.subscribing.rate != rate:
            self.subscribing = SubscribeThrottle(self._context, rate)

    def measured(self, messages: float, size: float) -> None:
        """Producers published so many messages and bytes in each second of the last interval."""
        self.published = int(messages), int(size)
        if self.dispatching is not None:
            self.dispatching.follow(self.published)

    def charge(self, connection: "Connection", messages: int, size: int) -> None:
        """A producer of the connection published; above a rate, its connection is not read for a while."""
        for limiter in (self.publishing, self._of_broker):
            if limiter is not None and not limiter.take(messages, size):
                self.times_limited += 1
                connection.throttle(limiter)

    def check_subscribe(self, consumer: ConsumerKey) -> None:
        """Count a SUBSCRIBE. Raises `NotAllowed` above the subscribe rate (BROKER-15)."""
        if self.subscribing is not None and not self.subscribing.take(consumer):
            raise NotAllowed("Subscribe limited by subscribe rate limit per consumer.")

    def close(self) -> None:
        """The topic is not served any more, or by new limiters: connections that wait go on."""
        if self.publishing is not None:
            self.publishing.close()
