"""`WithheldEntries`: which encrypted entries a consumer of a world may withhold, and until when."""

import pytest

from pulsar_sansio.model.config import ConsumerSpec, ProducerSpec
from pulsar_sansio.model.encryption import ConsumerCryptoFailureAction as Action
from pulsar_sim.engine.clock import SECOND
from pulsar_sim.engine.security.key_holder import KeyHolder
from pulsar_sim.model.records.entry import StoredEntry
from pulsar_sim.model.records.producer_record import ProducerRecord
from pulsar_sim.model.records.sealed import Sealed
from pulsar_sim.model.records.sent import Sent
from pulsar_sim.model.records.topic_record import TopicRecord
from pulsar_sim.model.withheld import WithheldEntries

TOPIC = TopicRecord("persistent://public/default/t", False)
KEY = ("key-0", ())
AT = (0, 1)


def entry(wrapped: bytes = b"wrapped") -> StoredEntry:
    record = ProducerRecord("p0.1", TOPIC, ProducerSpec(TOPIC.name))
    made = StoredEntry(b"", (Sent(record, 0, b"", None, {}, 0),))
    made.sealed = Sealed((KEY,), (wrapped,), b"", b"", b"")
    return made


class Consumer:
    """A consumer whose key reader is remembered for ten seconds, and what it withholds."""

    def __init__(self, action: Action = Action.FAIL, *, has_reader: bool = True) -> None:
        self.reader = KeyHolder("c0.1", 10 * SECOND, private=True, dependable=False, several=False)
        spec = ConsumerSpec(
            TOPIC.name,
            "s",
            crypto_failure_action=action,
            crypto_key_reader=self.reader if has_reader else None,
            acknowledgement_timeout=2.0,
        )
        self.withheld = WithheldEntries(spec)

    def refuse(self, now: int) -> None:
        self.reader.open[1] = KEY
        self.reader.failed(1, now, refused=True)


def test_an_entry_is_delivered_unless_there_is_a_reason() -> None:
    """Rule INV-E3."""
    consumer = Consumer()
    consumer.withheld.arrived(AT, entry(), False, 20 * SECOND)
    assert not consumer.withheld.may_skip(AT)
    consumer.refuse(5 * SECOND)
    assert not consumer.withheld.may_skip(AT), "that was too long ago"
    consumer.refuse(15 * SECOND)
    assert consumer.withheld.may_skip(AT)
    assert not consumer.withheld.may_skip((0, 2)), "another entry"


def test_a_data_key_that_was_opened_opens_later_entries() -> None:
    consumer = Consumer()
    consumer.refuse(0)
    consumer.withheld.arrived(AT, entry(), False, SECOND)
    assert entry().sealed is not None
    consumer.withheld.opened((0, 0), Sealed((KEY,), (b"wrapped",), b"", b"", b""), 2 * SECOND)
    assert consumer.withheld.may_skip(AT), "it had arrived before"
    consumer.withheld.arrived(AT, entry(), False, 3 * SECOND)
    assert not consumer.withheld.may_skip(AT)
    consumer.withheld.arrived(AT, entry(), True, 4 * SECOND)
    assert consumer.withheld.may_skip(AT), "a hostile broker has changed it"


@pytest.mark.parametrize(
    ("action", "skips", "discards", "delivers"),
    [
        (Action.FAIL, True, False, False),
        (Action.DISCARD, True, True, False),
        (Action.CONSUME, False, False, True),
    ],
)
def test_the_failure_action_decides(action: Action, skips: bool, discards: bool, delivers: bool) -> None:
    consumer = Consumer(action, has_reader=False)
    consumer.withheld.arrived(AT, entry(), False, 0)
    withheld = consumer.withheld
    found = withheld.may_skip(AT), withheld.may_discard(AT), withheld.may_deliver(AT)
    assert found == (skips, discards, delivers)


def test_a_withheld_entry_is_due_after_the_acknowledgement_timeout() -> None:
    consumer = Consumer(has_reader=False)
    consumer.withheld.arrived(AT, entry(), False, SECOND)
    assert not consumer.withheld.is_due(AT, 3 * SECOND - 1)
    assert not consumer.withheld.any_due(3 * SECOND - 1)
    assert consumer.withheld.is_due(AT, 3 * SECOND)
    assert consumer.withheld.any_due(3 * SECOND)
    assert not consumer.withheld.any_due(4 * SECOND), "everything was asked for"
