"""A topic of the reference model with entries that tests put there."""

from pulsar_sansio.model.config import ProducerSpec, SubscriptionType
from pulsar_sim.model.records.entry import StoredEntry
from pulsar_sim.model.records.message_position import Position
from pulsar_sim.model.records.producer_record import ProducerRecord
from pulsar_sim.model.records.sent import Sent
from pulsar_sim.model.records.subscription_record import SubscriptionRecord
from pulsar_sim.model.records.topic_record import TopicRecord

NAME = "persistent://public/default/t"


class TopicScene:
    """A topic and its producer. Each message is named by its key, or by a dot where it has none."""

    def __init__(self) -> None:
        self.topic = TopicRecord(NAME, deduplication=False)
        self.producer = ProducerRecord("p", self.topic, ProducerSpec(topic=NAME))

    def sent(self, key: str | None, payload: bytes | None = b"v") -> Sent:
        return Sent(self.producer, 0, payload, key, {}, 0)

    def store(self, position: Position, keys: str, payload: bytes | None = b"v") -> StoredEntry:
        """Store one entry with a message for each of `keys`."""
        messages = tuple(self.sent(None if key == "." else key, payload) for key in keys)
        entry = StoredEntry(f"{position}".encode(), messages)
        self.topic.stored(position, entry)
        return entry

    def store_all(self, *entries: str) -> None:
        """Store entries 0, 1, … of ledger 1."""
        for entry_id, keys in enumerate(entries):
            self.store((1, entry_id), keys)

    def subscription(self, kind: SubscriptionType = SubscriptionType.SHARED) -> SubscriptionRecord:
        return SubscriptionRecord(self.topic, "s", kind)
