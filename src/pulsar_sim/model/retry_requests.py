"""Messages that applications reconsume later (INV-C10): the requests, and the contents of copies.

Owns the requests by the origin that a copy names: the first original, and the number of reconsumptions. A
copy of a copy also names the first original. It does not know how a copy gets to its topic.
"""

from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pulsar_sansio.wire import MessageMetadata

from .records.consumer_record import ConsumerRecord
from .records.message_position import MessagePosition
from .records.sent import Sent

TIMES = "RECONSUMETIMES"
DELAY = "DELAY_TIME"

Origin: TypeAlias = tuple[str, str, int]
"""Topic and id of the first original, and the number of reconsumptions."""


def origin_of(said: Mapping[str, str]) -> Origin:
    """Return the origin that the properties of a copy name."""
    return said.get("REAL_TOPIC", ""), said.get("ORIGIN_MESSAGE_ID", ""), times_of(said)


def times_of(said: Mapping[str, str]) -> int:
    return int(said.get(TIMES, "0"))


@dataclass(order=True, slots=True)
class Copy:
    """A message in a retry topic, or in a dead-letter topic."""

    number: int
    """The number of the copy, in the order of first writes."""
    counted: bool = False
    """A report that a copy is stored has counted this one."""


@dataclass(eq=False, slots=True)
class RetryRequest:
    """One request to reconsume a message later; a message may have several."""

    record: ConsumerRecord
    message_position: MessagePosition
    sent: Sent
    delay: int
    """The delay in milliseconds."""
    cumulative: bool
    """All messages before it are acknowledged when its copy is stored."""
    stored: list[Copy] = field(default_factory=list)
    """Copies that may belong to this request: they were first written after it."""

    def is_safe(self) -> bool:
        """True when a copy is stored that counts for no other request; it counts for this one from now on.
        The first will do: a request that may count it may count the later ones."""
        for copy in self.stored:
            if not copy.counted:
                copy.counted = True
                return True
        return False

    def is_stored(self, copy: Copy) -> None:
        """A receipt for a copy arrived, perhaps not the first."""
        if copy not in self.stored:
            insort(self.stored, copy)

    @property
    def most(self) -> int:
        policy = self.record.spec.dead_letter
        assert policy is not None
        return policy.max_redeliver_count

    def what_is_wrong(self, topic: str, times: int, metadata: MessageMetadata) -> str:
        """Return what is wrong with a copy in that topic, or an empty text."""
        policy = self.record.spec.dead_letter
        assert policy is not None
        where = policy.retry_topic if times <= self.most else policy.topic
        if topic != where:
            return f"reconsumed later for the {times}. time of {self.most}, it goes to {topic}"
        said = dict(metadata.properties)
        if said.get(DELAY) != str(self.delay):
            return f"its delay is {said.get(DELAY)}, not {self.delay}"
        due = metadata.publish_time + self.delay if self.delay and times <= self.most else None
        if (metadata.deliver_at_time or None) != due:
            return f"it is delivered at {metadata.deliver_at_time}, not {due}"
        return ""


class RetryRequests:
    """The requests of all applications."""

    def __init__(self) -> None:
        self._by_origin: dict[Origin, list[RetryRequest]] = {}

    def reconsume_later(
        self,
        record: ConsumerRecord,
        message_position: MessagePosition,
        message_id: str,
        delay: int,
        cumulative: bool,
    ) -> RetryRequest:
        """An application asks to reconsume the message, with a delay in milliseconds."""
        topic = record.subscription.topic
        sent = topic.log[message_position[:2]].messages[message_position[2]]
        origin = origin_of(sent.properties) if TIMES in sent.properties else (topic.name, message_id, 0)
        again = (origin[0], origin[1], origin[2] + 1)
        asked = RetryRequest(record, message_position, sent, delay, cumulative)
        self._by_origin.setdefault(again, []).append(asked)
        return asked

    def of(self, origin: Origin) -> list[RetryRequest]:
        return self._by_origin.get(origin, [])
