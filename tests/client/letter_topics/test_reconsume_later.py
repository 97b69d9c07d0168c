"""Messages that are reconsumed later, and their copies."""

from typing import Any

import pytest

from pulsar_sansio.client.letter_topics.letter_topics import copy_of, with_retry_topic
from pulsar_sansio.client.outputs import RequestDone, RequestFailed
from pulsar_sansio.model.config import (
    ConsumerSpec,
    DeadLetterPolicy,
    TopicsPattern,
)
from pulsar_sansio.model.errors import (
    ClosedError,
    InvalidConfiguration,
    LocalProtocolError,
    NotAllowed,
)
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import MessageId, TopicMessageId
from pulsar_sansio.wire import MessageCommand, proto
from tests.client.acknowledging.test_redelivery import EXCLUSIVE, SHARED, positions
from tests.client.broker_script import (
    MILLISECOND,
    SECOND,
    WALL,
    ConsumerScript,
    batch_bytes,
    entry_bytes,
)
from tests.client.letter_topics.letters_script import REDELIVER, LettersScript, T


class TestLater:
    def test_a_copy_to_the_retry_topic(self) -> None:
        """RETRY-01; seen: java-retry-letter."""
        s = LettersScript(retry=True)
        s.deliver(2, entry_bytes(b"m", partition_key="k", properties=[("x", "y")]))
        s.pass_time(SECOND)
        request = s.later(s.receive(), 0.2)
        producer = s.accept_producer()
        assert (producer.topic, producer.HasField("producer_name")) == (f"{T}-retry", False)
        ((metadata, payload),) = s.sends()
        assert (payload, metadata.partition_key) == (b"m", "k")
        assert metadata.deliver_at_time == WALL + s.now // MILLISECOND + 200
        assert list(metadata.properties) == [
            ("DELAY_TIME", "200"),
            ("ORIGIN_MESSAGE_ID", "1:2:-1"),
            ("ORIGIN_MESSAGE_IDY_TIME", "1:2:-1"),
            ("REAL_SUBSCRIPTION", "s"),
            ("REAL_TOPIC", T),
            ("RECONSUMETIMES", "1"),
            ("x", "y"),
        ]
        s.outputs()
        s.confirm(0)
        (ack,) = s.expect("ACK")
        assert ack.message_ids == [(1, 2, None)]
        assert s.outputs() == [RequestDone(request, None)]

    def test_the_consumer_is_subscribed_to_it_too(self) -> None:
        """RETRY-02: what waited comes from there, and is acknowledged there."""
        s = LettersScript(retry=True)
        assert s.subscribed == [T, f"{T}-retry"]
        retry = MessageCommand(1, 5, 0, payload=entry_bytes(b"again"))
        s.bytes(retry.encode())
        message = s.receive()
        assert (message.data, message.topic) == (b"again", f"{T}-retry")
        s.acknowledge(message)
        (ack,) = s.expect("ACK")
        assert (ack.consumer_id, ack.message_ids) == (1, [(5, 0, None)])

    def test_from_the_retry_topic_it_is_reconsumed_later_once_more(self) -> None:
        s = LettersScript(retry=True)
        said = [("RECONSUMETIMES", "1"), ("REAL_TOPIC", T), ("ORIGIN_MESSAGE_ID", "1:2:-1")]
        s.bytes(MessageCommand(1, 5, 0, payload=entry_bytes(b"m", properties=said)).encode())
        s.later(s.receive(), 1.0)
        assert s.accept_producer().topic == f"{T}-retry"
        ((metadata, _),) = s.sends()
        properties = dict(metadata.properties)
        assert (properties["RECONSUMETIMES"], properties["REAL_TOPIC"]) == ("2", T)
        assert properties["ORIGIN_MESSAGE_ID"] == "1:2:-1"
        s.confirm(0)
        (ack,) = s.expect("ACK")
        assert (ack.consumer_id, ack.message_ids) == (1, [(5, 0, None)])

    def test_several_topics_share_one(self) -> None:
        """Named after the first."""
        spec = with_retry_topic(ConsumerSpec(("a", "b"), "s", retry=True))
        assert spec.topic == tuple(f"persistent://public/default/{name}" for name in ("a", "b", "a-s-RETRY"))
        assert spec.dead_letter is not None
        assert spec.dead_letter.topic == "persistent://public/default/a-s-DLQ"

    def test_not_of_a_pattern(self) -> None:
        with pytest.raises(InvalidConfiguration, match="pattern"):
            with_retry_topic(ConsumerSpec(TopicsPattern("t-.*"), "s", retry=True))

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"receiver_queue_size": 0}, "receiver_queue_size: 1 and more"),
            ({"dead_letter": DeadLetterPolicy(1, retry_topic="t")}, "named twice"),
        ],
    )
    def test_what_cannot_be(self, options: dict[str, Any], why: str) -> None:
        with pytest.raises(InvalidConfiguration, match=why):
            with_retry_topic(ConsumerSpec("t", "s", retry=True, **options))

    def test_at_once_and_with_properties(self) -> None:
        s = LettersScript(retry=True)
        s.message(0)
        s.later(s.receive(), 0, {"why": "busy"})
        s.accept_producer()
        ((metadata, _),) = s.sends()
        assert metadata.deliver_at_time is None
        assert dict(metadata.properties)["why"] == "busy"
        assert dict(metadata.properties)["DELAY_TIME"] == "0"

    @pytest.mark.parametrize(
        ("before", "topic", "after"),
        [("1", "t-retry", "2"), ("2", "t-dead", "3"), ("junk", "t-retry", "1"), ("9" * 5000, "t-retry", "1")],
    )
    def test_past_the_maximum_it_is_a_dead_letter(self, before: str, topic: str, after: str) -> None:
        """RETRY-03."""
        s = LettersScript(retry=True)
        s.deliver(0, entry_bytes(b"m", properties=[("RECONSUMETIMES", before)]))
        s.later(s.receive(), 1.0)
        assert s.accept_producer().topic == f"persistent://public/default/{topic}"
        ((metadata, _),) = s.sends()
        assert dict(metadata.properties)["RECONSUMETIMES"] == after
        assert (metadata.deliver_at_time is None) == (topic == "t-dead")

    def test_without_a_policy_sixteen_times_and_the_topic_has_the_usual_name(self) -> None:
        s = LettersScript(retry=True, dead_letter=None)
        for entry, before in enumerate(("15", "16")):
            s.deliver(entry, entry_bytes(b"m", properties=[("RECONSUMETIMES", before)]))
            s.later(s.receive(), 1.0)
            assert s.accept_producer().topic == T + ("-s-RETRY", "-s-DLQ")[entry]
            s.sends()

    def test_a_message_of_a_batch_alone(self) -> None:
        s = LettersScript(retry=True, batch_index_acknowledgement=True)
        s.batch(0, 3)
        s.later(s.take()[1], 1.0)
        s.accept_producer()
        assert [payload for _, payload in s.sends()] == [b"0.1"]
        s.confirm(0)
        (ack,) = s.expect("ACK")
        assert ack.message_ids == [(1, 0, 0b101)]

    def test_meanwhile_it_is_judged(self) -> None:
        s = LettersScript(retry=True, acknowledgement_timeout=5.0)
        s.message(0)
        s.later(s.receive(), 1.0)
        s.accept_producer()
        s.sends()
        s.pass_time(10 * SECOND)
        s.expect()

    def test_on_failure_it_is_redelivered(self) -> None:
        s = LettersScript(retry=True)
        s.message(0)
        request = s.later(s.receive(), 1.0)
        s.outputs()
        s.refuse_producer()
        (failed,) = s.outputs()
        assert isinstance(failed, RequestFailed)
        assert failed.request == request
        assert isinstance(failed.error, NotAllowed)
        s.pass_time(1100 * MILLISECOND)
        (request_again,) = s.expect(REDELIVER)
        assert positions(request_again) == [(1, 0)]

    def test_what_cannot_be_sent_fails_at_once(self) -> None:
        s = LettersScript(retry=True)
        s.message(0)
        message = s.receive()
        s.later(message, 1.0)
        s.accept_producer()
        s.sends()
        s.outputs()
        s.later(message, 1.0, {"large": "x" * 6_000_000})
        (failed,) = s.outputs()
        assert isinstance(failed, RequestFailed)
        s.pass_time(1100 * MILLISECOND)
        s.expect(REDELIVER)

    def test_closed_meanwhile_the_caller_is_told(self) -> None:
        s = LettersScript(retry=True)
        s.message(0)
        request = s.later(s.receive(), 1.0)
        s.accept_producer()
        s.sends()
        s.outputs()
        s.close()
        s.expect("CLOSE_PRODUCER", "CLOSE_CONSUMER", "CLOSE_CONSUMER")
        failed = s.outputs()[0]
        assert isinstance(failed, RequestFailed)
        assert failed.request == request
        assert isinstance(failed.error, ClosedError)

    def test_the_request_is_cancelled(self) -> None:
        s = LettersScript(retry=True)
        s.message(0)
        request = s.later(s.receive(), 1.0)
        s.client.abandon(s.now, request)
        s.accept_producer()
        s.sends()
        s.outputs()
        s.confirm(0)
        s.expect("ACK")
        assert s.outputs() == []

    def test_on_an_exclusive_subscription(self) -> None:
        s = LettersScript(EXCLUSIVE, retry=True)
        s.message(0)
        s.later(s.receive(), 1.0)
        s.accept_producer()
        s.sends()
        s.confirm(0)
        s.expect("ACK")

    def test_mistakes_change_nothing(self) -> None:
        s = LettersScript(retry=True)
        s.message(0)
        message = s.receive()
        other = ConsumerScript(topic="other")
        other.accept()
        other.message(0)
        foreign = other.receive()
        for what, delay, properties, why in (
            (message, -1, None, "delay: seconds from 0"),
            (message, float("nan"), None, "delay: seconds from 0"),
            (message, "1", None, "delay: seconds from 0"),
            (message, 1.0, {"a": 1}, "properties: a mapping"),
            (message.message_id, 1.0, None, "message"),
            (foreign, 1.0, None, "public/default/other"),
        ):
            with pytest.raises(LocalProtocolError, match=why):
                s.later(what, delay, properties)
        s.expect()
        s.close()
        with pytest.raises(ClosedError):
            s.later(message, 1.0)

    def test_only_with_retry(self) -> None:
        s = LettersScript()
        s.message(0)
        with pytest.raises(LocalProtocolError, match="retry=True"):
            s.later(s.receive(), 1.0)


class TestLaterCumulative:
    """A message is reconsumed later, and what came before it is done."""

    def test_the_copy_first_then_all_up_to_it(self) -> None:
        s = LettersScript(EXCLUSIVE, retry=True)
        for entry in range(3):
            s.message(entry)
        request = s.later(s.take()[1], 2.5, {"why": "busy"}, cumulative=True)
        assert s.accept_producer().topic == f"{T}-retry"
        ((metadata, _),) = s.sends()
        properties = dict(metadata.properties)
        assert properties["ORIGIN_MESSAGE_ID"] == "1:1:-1"
        assert (properties["RECONSUMETIMES"], properties["DELAY_TIME"], properties["why"]) == (
            "1",
            "2500",
            "busy",
        )
        s.outputs()
        s.confirm(0)
        (ack,) = s.expect("ACK")
        assert ack.ack_type == proto.CommandAck.Cumulative
        assert ack.message_ids == [(1, 1, None)]
        assert s.outputs() == [RequestDone(request, None)]

    def test_in_a_batch(self) -> None:
        """Later messages of the batch stay unacknowledged."""
        s = LettersScript(EXCLUSIVE, retry=True, batch_index_acknowledgement=True)
        s.message(0)
        s.batch(1, 3)
        s.later(s.take()[2], 1.0, cumulative=True)  # index 1
        s.accept_producer()
        s.sends()
        s.confirm(0)
        (ack,) = s.expect("ACK")
        assert (ack.ack_type, ack.message_ids) == (proto.CommandAck.Cumulative, [(1, 1, 0b100)])

    def test_past_the_maximum_it_is_a_dead_letter(self) -> None:
        s = LettersScript(EXCLUSIVE, retry=True)
        s.deliver(0, entry_bytes(b"m", properties=[("RECONSUMETIMES", "2")]))
        s.later(s.receive(), 1.0, cumulative=True)
        assert s.accept_producer().topic == f"{T.removesuffix('/t')}/t-dead"

    def test_in_the_retry_topic_it_concerns_only_that(self) -> None:
        """ACK-25."""
        s = LettersScript(EXCLUSIVE, retry=True)
        s.message(0)
        s.bytes(MessageCommand(1, 5, 0, payload=entry_bytes(b"again")).encode())
        again = s.take()[1]
        assert again.topic == f"{T}-retry"
        s.later(again, 1.0, cumulative=True)
        s.accept_producer()
        s.sends()
        s.confirm(0)
        (ack,) = s.expect("ACK")
        assert (ack.consumer_id, ack.message_ids) == (1, [(5, 0, None)])

    def test_on_failure_everything_is_redelivered(self) -> None:
        s = LettersScript(EXCLUSIVE, retry=True)
        for entry in range(2):
            s.message(entry)
        request = s.later(s.take()[1], 1.0, cumulative=True)
        s.outputs()
        s.refuse_producer()
        (failed,) = s.outputs()
        assert isinstance(failed, RequestFailed)
        assert failed.request == request
        s.pass_time(1100 * MILLISECOND)
        (again,) = s.expect(REDELIVER)
        assert positions(again) == []  # all of them (REDEL-02)

    def test_meanwhile_all_of_it_is_judged(self) -> None:
        s = LettersScript(EXCLUSIVE, retry=True, acknowledgement_timeout=5.0)
        for entry in range(3):
            s.message(entry)
        _, second, third = s.take()
        s.later(second, 1.0, cumulative=True)
        s.accept_producer()
        s.sends()
        s.acknowledge(third)
        s.expect("ACK")
        s.pass_time(10 * SECOND)
        s.expect()

    @pytest.mark.parametrize("cumulative", [False, True])
    def test_after_a_seek_the_copy_judges_nothing(self, cumulative: bool) -> None:
        """SEEK-06: what lies before the message is redelivered, and a late copy must not acknowledge it."""
        s = LettersScript(EXCLUSIVE, retry=True)
        s.message(0)
        message = s.receive()
        request = s.later(message, 1.0, cumulative=cumulative)
        s.accept_producer()
        s.sends()
        s.client.seek(s.now, s.consumer, TopicMessageId(T, MessageId(1, 0)), inclusive=True)
        (seek,) = s.expect("SEEK")
        s.say("SUCCESS", proto.CommandSuccess(request_id=seek.request_id))
        s.outputs()
        s.frames()
        s.confirm(0)
        s.pass_time(2 * SECOND)
        assert "ACK" not in [name for name, _ in s.frames()]
        assert RequestDone(request, None) in s.outputs()

    def test_refused_where_messages_go_to_several(self) -> None:
        """ACK-02; and nothing has changed."""
        s = LettersScript(SHARED, retry=True)
        s.message(0)
        message = s.receive()
        with pytest.raises(LocalProtocolError, match="cumulative"):
            s.later(message, 1.0, cumulative=True)
        s.expect()
        s.acknowledge(message)
        s.expect("ACK")

    def test_mistakes_change_nothing(self) -> None:
        s = LettersScript(EXCLUSIVE, retry=True)
        s.message(0)
        message = s.receive()
        for what, delay in ((message, -1), (message.message_id, 1.0), ([message], 1.0)):
            with pytest.raises(LocalProtocolError):
                s.later(what, delay, cumulative=True)
        s.expect()
        without = LettersScript(EXCLUSIVE)
        without.message(0)
        with pytest.raises(LocalProtocolError, match="retry=True"):
            without.later(without.receive(), 1.0, cumulative=True)
        s.close()
        with pytest.raises(ClosedError):
            s.later(message, 1.0, cumulative=True)


class TestCopies:
    @pytest.mark.parametrize(
        "fields",
        [
            {"partition_key": "a2V5", "partition_key_b64_encoded": True},
            {"partition_key": "not base64", "partition_key_b64_encoded": True},
            {"event_time": 2**64 - 1},
            {"ordering_key": b"\x00\xff"},
        ],
    )
    def test_headers_as_they_are(self, fields: dict[str, Any]) -> None:
        s = LettersScript()
        s.deliver(0, entry_bytes(b"m", **fields), redelivery_count=3)
        s.accept_producer()
        ((metadata, _),) = s.sends()
        for name, value in fields.items():
            assert getattr(metadata, name) == value

    def test_a_null_value_stays_one(self) -> None:
        s = ConsumerScript()
        s.accept()
        s.deliver(0, entry_bytes(b"", null_value=True))
        message = s.receive()
        assert isinstance(message, Message)
        assert copy_of(message, {}).payload is None

    def test_out_of_a_batch(self) -> None:
        s = ConsumerScript()
        s.accept()
        s.deliver(0, batch_bytes([b"a", b"b"]))
        assert copy_of(s.take()[1], {}).payload == b"b"
