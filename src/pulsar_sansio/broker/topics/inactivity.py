"""`Inactivity`: for how long a topic has had no use, and whether it is then to be deleted.

A topic without clients is inactive when it has no subscription, or when its subscriptions have no backlog;
the policy says which. As in the Java broker, time is as exact as the calls of `is_over`. The module deletes
nothing.
"""

from typing import TYPE_CHECKING

from ...model.config import nanoseconds_of
from ..policies import INACTIVE_TOPIC_MODES
from .compaction.compaction import SUBSCRIPTION as COMPACTION

if TYPE_CHECKING:
    from .topic import Topic

NO_SUBSCRIPTIONS, CAUGHT_UP = INACTIVE_TOPIC_MODES


class Inactivity:
    """The time since the topic was last seen in use, or since it is served."""

    def __init__(self, topic: "Topic") -> None:
        self._topic = topic
        self._since = topic.context.now

    def is_over(self) -> bool:
        """True when the topic was inactive for as long as its policy says, and for its retention time."""
        topic = self._topic
        policy = topic.policies.inactive_topics
        now = topic.context.now
        if policy is None or not policy.delete or self._in_use(policy.mode):
            self._since = now
            return False
        idle = now - self._since
        retention = topic.policies.retention_time or 0
        return idle >= policy.seconds * 1_000_000_000 and 0 <= nanoseconds_of(retention) <= idle

    def _in_use(self, mode: str) -> bool:
        """Compaction's subscription does not count: no client receives from it."""
        topic = self._topic
        if topic.producers.by_name or topic.consumer_count:
            return True
        subscriptions = [each for name, each in topic.subscriptions.items() if name != COMPACTION]
        return any(mode == NO_SUBSCRIPTIONS or each.backlog for each in subscriptions)
