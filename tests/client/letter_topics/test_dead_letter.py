"""`Client.dead_letter`: a message that the application sends to the dead letters at once."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import RequestDone, RequestFailed
from pulsar_sansio.model.config import DeadLetterPolicy
from pulsar_sansio.model.errors import (
    ClosedError,
    InvalidConfiguration,
    LocalProtocolError,
    NotAllowed,
)
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import EARLIEST
from pulsar_sansio.wire import MessageCommand
from tests.client.acknowledging.test_redelivery import EXCLUSIVE, positions
from tests.client.broker_script import MILLISECOND, SECOND, WALL, entry_bytes
from tests.client.letter_topics.letters_script import LettersScript, T

REDELIVER = "REDELIVER_UNACKNOWLEDGED_MESSAGES"


class AtOnceScript(LettersScript):
    def at_once(self, message: Any, properties: Any = None) -> int:
        wall_time = WALL + self.now // MILLISECOND
        request = self.client.dead_letter(self.now, self.consumer, message, wall_time, properties)
        self.pump()
        return request


def test_the_copy_first_then_the_acknowledgement_then_the_answer() -> None:
    """The copy is that of a message that came too often (DLQ-04), with the application's properties."""
    s = AtOnceScript()
    s.deliver(2, entry_bytes(b"bad", partition_key="k", event_time=77, properties=[("x", "y")]))
    s.pass_time(SECOND)
    s.outputs()
    request = s.at_once(s.receive(), {"why": "no number"})
    assert s.accept_producer().topic == f"{T}-dead"
    ((metadata, payload),) = s.sends()
    assert (payload, metadata.partition_key, metadata.event_time) == (b"bad", "k", 77)
    assert (metadata.publish_time, metadata.deliver_at_time) == (WALL + s.now // MILLISECOND, None)
    assert list(metadata.properties) == [
        ("ORIGIN_MESSAGE_ID", "1:2:-1"),
        ("ORIGIN_MESSAGE_IDY_TIME", "1:2:-1"),
        ("REAL_SUBSCRIPTION", "s"),
        ("REAL_TOPIC", T),
        ("why", "no number"),
        ("x", "y"),
    ]
    s.expect()
    assert s.outputs() == []
    s.confirm(0)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 2, None)]
    assert s.outputs() == [RequestDone(request, None)]
    assert s.client.arrival_counters(s.consumer).dead_letters == 0  # it was delivered


def test_of_a_partition_the_copy_says_which() -> None:
    s = AtOnceScript(topic="t-partition-3", dead_letter=DeadLetterPolicy(1))
    s.message(0)
    s.at_once(s.receive())
    assert s.accept_producer().topic == f"{T}-s-DLQ"
    ((metadata, _),) = s.sends()
    assert ("REAL_TOPIC", f"{T}-partition-3") in metadata.properties


def test_one_message_of_a_batch() -> None:
    s = AtOnceScript(batch_index_acknowledgement=True)
    s.batch(0, 3)
    s.at_once(s.take()[1])
    s.accept_producer()
    assert [payload for _, payload in s.sends()] == [b"0.1"]
    s.confirm(0)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 0, 0b101)]


def test_the_last_of_a_batch_completes_the_entry() -> None:
    s = AtOnceScript()
    s.batch(0, 2)
    first, second = s.take()
    s.acknowledge(first)
    s.at_once(second)
    s.accept_producer()
    s.sends()
    s.confirm(0)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 0, None)]


def test_from_the_retry_topic_with_the_first_origin() -> None:
    """Several topics: the message and its acknowledgement are those of the one it came from."""
    s = AtOnceScript(retry=True)
    said = [("RECONSUMETIMES", "1"), ("REAL_TOPIC", T), ("ORIGIN_MESSAGE_ID", "1:2:-1")]
    s.bytes(MessageCommand(1, 5, 0, payload=entry_bytes(b"m", properties=said)).encode())
    request = s.at_once(s.receive())
    assert s.accept_producer().topic == f"{T}-dead"
    ((metadata, _),) = s.sends()
    assert dict(metadata.properties)["REAL_TOPIC"] == T
    assert dict(metadata.properties)["ORIGIN_MESSAGE_ID"] == "1:2:-1"
    s.outputs()
    s.confirm(0)
    (ack,) = s.expect("ACK")
    assert (ack.consumer_id, ack.message_ids) == (1, [(5, 0, None)])
    assert s.outputs() == [RequestDone(request, None)]


def test_with_retry_alone_there_are_dead_letters_too() -> None:
    s = AtOnceScript(retry=True, dead_letter=None)
    s.message(0)
    s.at_once(s.receive())
    assert s.accept_producer().topic == f"{T}-s-DLQ"


def test_on_an_exclusive_subscription() -> None:
    s = AtOnceScript(EXCLUSIVE)
    s.message(0)
    s.at_once(s.receive())
    s.accept_producer()
    s.sends()
    s.confirm(0)
    (ack,) = s.expect("ACK")
    assert ack.message_ids == [(1, 0, None)]


def test_on_failure_it_is_redelivered() -> None:
    s = AtOnceScript()
    s.message(0)
    s.outputs()
    request = s.at_once(s.receive())
    s.refuse_producer()
    (failed,) = s.outputs()
    assert isinstance(failed, RequestFailed)
    assert failed.request == request
    assert isinstance(failed.error, NotAllowed)
    s.expect()
    s.pass_time(1200 * MILLISECOND)
    (command,) = s.expect(REDELIVER)
    assert positions(command) == [(1, 0)]


def test_meanwhile_the_acknowledgement_timeout_does_not_ask_for_it() -> None:
    s = AtOnceScript(acknowledgement_timeout=5.0)
    s.message(0)
    s.at_once(s.receive())
    s.accept_producer()
    s.sends()
    s.pass_time(20 * SECOND)
    assert REDELIVER not in [name for name, _ in s.frames()]


def test_closed_meanwhile_the_caller_is_told() -> None:
    s = AtOnceScript()
    s.message(0)
    s.outputs()
    request = s.at_once(s.receive())
    s.client.close(s.now, s.consumer)
    s.pump()
    failed = [output for output in s.outputs() if isinstance(output, RequestFailed)]
    assert [each.request for each in failed] == [request]
    assert isinstance(failed[0].error, ClosedError)


def test_an_answer_that_is_not_wanted_any_more() -> None:
    s = AtOnceScript()
    s.message(0)
    s.outputs()
    s.client.abandon(s.now, s.at_once(s.receive()))
    s.accept_producer()
    s.sends()
    s.confirm(0)
    s.expect("ACK")
    assert s.outputs() == []


def test_mistakes_change_nothing() -> None:
    s = AtOnceScript()
    s.message(0)
    message = s.receive()
    other = LettersScript(topic="other")
    other.message(0)
    wrong: list[tuple[Any, Any, type[Exception]]] = [
        (EARLIEST, None, LocalProtocolError),
        (None, None, LocalProtocolError),
        (other.receive(), None, LocalProtocolError),
        (message, {"a": 1}, InvalidConfiguration),
    ]
    for what, properties, error in wrong:
        with pytest.raises(error):
            s.at_once(what, properties)
    s.expect()
    s.acknowledge(message)
    s.expect("ACK")


def test_only_where_there_are_dead_letters() -> None:
    s = AtOnceScript(dead_letter=None)
    s.message(0)
    message = s.receive()
    assert isinstance(message, Message)
    with pytest.raises(LocalProtocolError, match="DeadLetterPolicy"):
        s.at_once(message)
    s.expect()
