"""`WantedState`: numbers of producers, consumers and messages that a test of an application waits for."""

from collections.abc import Iterable

from ...model.errors import InvalidConfiguration
from ..topic_pattern import TopicPattern
from ..topics.compaction.compaction import SUBSCRIPTION as COMPACTION
from ..topics.registry import AnyTopic

NO_SUBSCRIPTION = "no subscription"


class WantedState:
    """Exact numbers over the topics that `topic` matches; None is any number.

    `producers`, `consumers`: those that clients know to be open. `backlog`: entries of the subscriptions that
    are not acknowledged; while there is no such subscription, no backlog is reached, not even 0.
    `subscription`: counts consumers and backlog of the subscriptions of this name only.
    Raises `InvalidConfiguration`.
    """

    __slots__ = ("_backlog", "_consumers", "_pattern", "_producers", "_subscription")

    def __init__(
        self,
        *,
        producers: int | None = None,
        consumers: int | None = None,
        backlog: int | None = None,
        topic: str = "*",
        subscription: str | None = None,
    ) -> None:
        wanted = {"producers": producers, "consumers": consumers, "backlog": backlog}
        for name, value in wanted.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise InvalidConfiguration(f"{name}: a whole number from 0 on or None, not {value!r:.100}")
        if all(value is None for value in wanted.values()):
            raise InvalidConfiguration("producers, consumers, backlog: one of them at least")
        if subscription is not None and not isinstance(subscription, str):
            raise InvalidConfiguration(f"subscription: a name or None, not {subscription!r:.100}")
        self._producers, self._consumers, self._backlog = producers, consumers, backlog
        self._pattern = TopicPattern(topic)
        self._subscription = subscription

    def differences(self, topics: Iterable[AnyTopic]) -> str:
        """Return the present numbers that differ from the wanted ones, for people; an empty text for none."""
        producers = consumers = backlog = subscriptions = 0
        for topic in topics:
            if not self._pattern.matches(topic.name):
                continue
            producers += sum(each.ready for each in topic.producers.by_name.values())
            for name, subscription in topic.subscriptions.items():
                if self._subscription == name or (self._subscription is None and name != COMPACTION):
                    consumers += sum(each.ready for each in subscription.consumers)
                    backlog += subscription.backlog
                    subscriptions += 1
        different = [
            f"{name}: {present}, not {wanted}"
            for name, present, wanted in (
                ("producers", producers, self._producers),
                ("consumers", consumers, self._consumers),
                ("backlog", backlog if subscriptions else NO_SUBSCRIPTION, self._backlog),
            )
            if wanted is not None and present != wanted
        ]
        return "; ".join(different)
