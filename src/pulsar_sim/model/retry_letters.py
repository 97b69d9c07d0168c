"""Messages that applications want to consume later (INV-C10): who asked for which, what a copy must say.

Owns what was put off, by what the copy says of its origin: the first original, and how often it was put off.
A copy of a copy names the first original, too. It knows nothing of how the copy gets to its topic.
"""

from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pulsar_sansio.wire import MessageMetadata

from .records import ConsumerRecord, Place, Sent

TIMES = "RECONSUMETIMES"
DELAY = "DELAY_TIME"

Origin: TypeAlias = tuple[str, str, int]
"""Topic and id of the first original, and how often it was put off."""


def origin_of(said: Mapping[str, str]) -> Origin:
    """What the properties of a copy say."""
    return said.get("REAL_TOPIC", ""), said.get("ORIGIN_MESSAGE_ID", ""), times_of(said)


def times_of(said: Mapping[str, str]) -> int:
    return int(said.get(TIMES, "0"))


@dataclass(order=True, slots=True)
class Copy:
    """A message in the topic where it waits, or in that of the dead letters."""

    number: int
    """In which order they were written for the first time."""
    counted: bool = False
    """It is what somebody was told to be safe."""


@dataclass(eq=False, slots=True)
class RetryLetters:
    """One message that somebody wants later, as often as it is asked for."""

    record: ConsumerRecord
    place: Place
    sent: Sent
    delay: int
    """Milliseconds."""
    cumulative: bool
    """All before it are done with when its copy is safe."""
    stored: list[Copy] = field(default_factory=list)
    """Copies that may be its own: they were written after that was asked for, for the first time."""

    def is_safe(self) -> bool:
        """Whether there is a copy that was not counted for another; from now on it is. The first one will do:
        whoever may count that may count the later ones."""
        for copy in self.stored:
            if not copy.counted:
                copy.counted = True
                return True
        return False

    def is_stored(self, copy: Copy) -> None:
        """There was a receipt, perhaps another one."""
        if copy not in self.stored:
            insort(self.stored, copy)

    @property
    def most(self) -> int:
        policy = self.record.spec.dead_letter
        assert policy is not None
        return policy.max_redeliver_count

    def what_is_wrong(self, topic: str, times: int, metadata: MessageMetadata) -> str:
        """With a copy in that topic that says so; or nothing."""
        policy = self.record.spec.dead_letter
        assert policy is not None
        where = policy.retry_topic if times <= self.most else policy.topic
        if topic != where:
            return f"put off for the {times}. time of {self.most}, it goes to {topic}"
        said = dict(metadata.properties)
        if said.get(DELAY) != str(self.delay):
            return f"its delay is {said.get(DELAY)}, not {self.delay}"
        due = metadata.publish_time + self.delay if self.delay and times <= self.most else None
        if (metadata.deliver_at_time or None) != due:
            return f"it is delivered at {metadata.deliver_at_time}, not {due}"
        return ""


class Waiting:
    """All of them."""

    def __init__(self) -> None:
        self._by_origin: dict[Origin, list[RetryLetters]] = {}

    def put_off(
        self, record: ConsumerRecord, place: Place, message_id: str, delay: int, cumulative: bool
    ) -> RetryLetters:
        """An application asks for it, with a delay in milliseconds."""
        topic = record.subscription.topic
        sent = topic.log[place[:2]].messages[place[2]]
        origin = origin_of(sent.properties) if TIMES in sent.properties else (topic.name, message_id, 0)
        again = (origin[0], origin[1], origin[2] + 1)
        asked = RetryLetters(record, place, sent, delay, cumulative)
        self._by_origin.setdefault(again, []).append(asked)
        return asked

    def of(self, origin: Origin) -> list[RetryLetters]:
        return self._by_origin.get(origin, [])
