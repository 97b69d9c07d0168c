"""Dead letters and messages to be consumed later (rules DLQ-01 to DLQ-08, RETRY-01 to RETRY-03)."""

import re
from typing import Any

import pytest

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.letter_topics.copy_producer import MAX_IN_FLIGHT
from pulsar_sansio.client.letter_topics.letter_topics import copy_of, with_retry_topic
from pulsar_sansio.client.outputs import LetterFailed, RequestDone, RequestFailed
from pulsar_sansio.model.config import (
    ClientConfig,
    ConsumerSpec,
    DeadLetterPolicy,
    RedeliveryBackoff,
    SubscriptionType,
    TopicsPattern,
)
from pulsar_sansio.model.errors import (
    ClosedError,
    InvalidConfiguration,
    LocalProtocolError,
    NotAllowed,
    TimedOut,
)
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.message_id import EARLIEST, MessageId, TopicMessageId
from pulsar_sansio.wire import MessageCommand, MessageMetadata, open_payload, proto
from tests.client.acknowledging.test_redelivery import EXCLUSIVE, SHARED, places
from tests.client.broker_script import (
    MILLISECOND,
    SECOND,
    WALL,
    ConsumerScript,
    batch_bytes,
    entry_bytes,
)

REDELIVER = "REDELIVER_UNACKNOWLEDGED_MESSAGES"
T = "persistent://public/default/t"


class LettersScript(ConsumerScript):
    """A consumer with a policy of 2 redeliveries, its broker, and that of the copies' producers."""

    def __init__(self, kind: SubscriptionType = SHARED, **spec: Any) -> None:
        spec.setdefault("dead_letter", DeadLetterPolicy(2, "t-dead", "t-retry"))
        spec.setdefault("acknowledgement_group_time", 0.0)
        spec.setdefault("negative_acknowledgement_delay", 1.0)
        spec.setdefault("receiver_queue_size", 10)
        super().__init__(subscription_type=kind, **spec)
        subscribing = self.expect(*["SUBSCRIBE"] * (1 + self.spec.retry))
        self.subscribed = [command.topic for command in subscribing]
        for command in subscribing:
            self.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
        self.frames()

    def accept_producer(self, **last: Any) -> Any:
        """The broker accepts the only PRODUCER that came; the PRODUCER."""
        (command,) = self.expect("PRODUCER")
        self.say(
            "PRODUCER_SUCCESS",
            proto.CommandProducerSuccess(
                request_id=command.request_id,
                producer_name=command.producer_name or "named-by-the-broker",
                last_sequence_id=-1,
                producer_ready=True,
            ),
        )
        return command

    def refuse_producer(self) -> None:
        (command,) = self.expect("PRODUCER")
        self.say(
            "ERROR",
            proto.CommandError(request_id=command.request_id, error=proto.NotAllowedError, message="no"),
        )
        self.pass_time(0)

    def sends(self, count: int = 1) -> list[tuple[MessageMetadata, bytes]]:
        """Headers and payloads of so many SENDs, the only frames that came."""
        found = []
        for command in self.expect(*["SEND"] * count):
            _, _, metadata, start = open_payload(command.payload)
            found.append((metadata, bytes(command.payload[start:])))
        return found

    def confirm(self, sequence_id: int, producer: int = 0) -> None:
        """The broker has stored a copy."""
        receipt = proto.CommandSendReceipt(producer_id=producer, sequence_id=sequence_id)
        receipt.message_id.ledgerId = 9
        receipt.message_id.entryId = sequence_id
        self.say("SEND_RECEIPT", receipt)
        self.pass_time(0)

    def permits(self) -> int:
        permits = self.machine.permits
        return permits.at_broker + permits.unreported

    def later(self, message: Any, delay: Any, properties: Any = None, *, cumulative: bool = False) -> int:
        wall_time = WALL + self.now // MILLISECOND
        request = self.client.reconsume_later(
            self.now, self.consumer, message, delay, wall_time, properties, cumulative=cumulative
        )
        self.pump()
        return request


class TestDeadLetters:
    def test_up_to_the_maximum_it_is_delivered(self) -> None:
        """DLQ-03, DLQ-09: the test is "exceeds"; seen: java-dead-letter."""
        s = LettersScript()
        for count in range(3):
            s.message(count, redelivery_count=count)
        assert [message.redelivery_count for message in s.take()] == [0, 1, 2]
        s.message(3, redelivery_count=3)
        assert s.receive() is None
        assert s.client.arrival_counters(s.consumer).dead_letters == 1

    def test_the_copy_first_then_the_acknowledgement(self) -> None:
        s = LettersScript()
        s.deliver(
            5,
            entry_bytes(
                b"poison", partition_key="k", event_time=77, ordering_key=b"o", properties=[("x", "y")]
            ),
            redelivery_count=3,
        )
        producer = s.accept_producer()
        assert producer.topic == f"{T}-dead"
        assert re.fullmatch(rf"{T}-s-[a-z0-9]{{5}}-[a-z0-9]{{5}}-DLQ", producer.producer_name)
        assert producer.user_provided_producer_name
        ((metadata, payload),) = s.sends()
        assert payload == b"poison"
        assert (metadata.partition_key, metadata.ordering_key, metadata.event_time) == ("k", b"o", 77)
        assert list(metadata.properties) == [
            ("ORIGIN_MESSAGE_ID", "1:5:-1"),
            ("ORIGIN_MESSAGE_IDY_TIME", "1:5:-1"),
            ("REAL_SUBSCRIPTION", "s"),
            ("REAL_TOPIC", T),
            ("x", "y"),
        ]
        assert metadata.publish_time == WALL
        s.pass_time(5 * SECOND)
        s.expect()
        s.confirm(0)
        (ack,) = s.expect("ACK")
        assert ack.message_ids == [(1, 5, None)]
        assert s.permits() == 10
        assert s.outputs()[1:] == []  # but for ConsumerReady

    def test_the_initial_subscription(self) -> None:
        s = LettersScript(dead_letter=DeadLetterPolicy(1, initial_subscription="init"))
        s.message(0, redelivery_count=2)
        producer = s.accept_producer()
        assert producer.topic == f"{T}-s-DLQ"  # DLQ-01
        assert producer.initial_subscription_name == "init"

    def test_all_partitions_share_one_default_topic(self) -> None:
        s = LettersScript(topic="t-partition-3", dead_letter=DeadLetterPolicy(1))
        s.message(0, redelivery_count=2)
        producer = s.accept_producer()
        assert producer.topic == f"{T}-s-DLQ"  # DLQ-02
        ((metadata, _),) = s.sends()
        assert ("REAL_TOPIC", f"{T}-partition-3") in metadata.properties

    def test_all_messages_of_a_batch_and_one_acknowledgement(self) -> None:
        s = LettersScript()
        s.batch(4, 3, redelivery_count=3)
        s.accept_producer()
        copies = s.sends(3)
        assert [payload for _, payload in copies] == [b"4.0", b"4.1", b"4.2"]
        assert [dict(metadata.properties)["ORIGIN_MESSAGE_ID"] for metadata, _ in copies] == [
            "1:4:-1:0",
            "1:4:-1:1",
            "1:4:-1:2",
        ]
        assert s.permits() == 7
        s.confirm(0)
        s.confirm(1)
        s.expect()
        s.confirm(2)
        (ack,) = s.expect("ACK")
        assert ack.message_ids == [(1, 4, None)]
        assert s.permits() == 10

    def test_a_batch_that_is_larger_than_the_window(self) -> None:
        s = LettersScript(receiver_queue_size=1000)
        size = MAX_IN_FLIGHT + 50
        s.batch(0, size, redelivery_count=3)
        s.accept_producer()
        sent = len(s.sends(MAX_IN_FLIGHT))
        for number in range(size):
            s.confirm(number)
            sent += len([name for name, _ in s.frames() if name == "SEND"])
            assert sent - number <= MAX_IN_FLIGHT + 1
        assert sent == size
        assert s.client.arrival_counters(s.consumer).dead_letters == size
        assert s.permits() == 1000

    def test_of_a_batch_only_what_is_not_acknowledged(self) -> None:
        s = LettersScript()
        s.batch(4, 3, redelivery_count=3, ack_set=0b101)
        s.accept_producer()
        assert [payload for _, payload in s.sends(2)] == [b"4.0", b"4.2"]

    def test_a_message_in_chunks_as_a_whole(self) -> None:
        s = LettersScript()
        header: dict[str, Any] = {"uuid": "u", "num_chunks_from_msg": 2, "total_chunk_msg_size": 4}
        s.deliver(0, entry_bytes(b"ab", chunk_id=0, **header), redelivery_count=3)
        s.deliver(1, entry_bytes(b"cd", chunk_id=1, **header), redelivery_count=3)
        s.accept_producer()
        assert [payload for _, payload in s.sends()] == [b"abcd"]
        s.confirm(0)
        (ack,) = s.expect("ACK")
        assert ack.message_ids == [(1, 0, None), (1, 1, None)]

    def test_messages_that_come_together_are_letters_of_their_own(self) -> None:
        s = LettersScript()
        data = b""
        for entry in range(3):
            data += MessageCommand(
                0, 1, entry, payload=entry_bytes(b"m", sequence_id=entry), redelivery_count=9
            ).encode()
        s.bytes(data)
        s.pump()
        s.accept_producer()
        s.sends(3)
        for entry in range(3):
            s.confirm(entry)
            (ack,) = s.expect("ACK")
            assert ack.message_ids == [(1, entry, None)]

    def test_a_copy_of_a_copy_keeps_the_first_origin(self) -> None:
        s = LettersScript()
        said = [("ORIGIN_MESSAGE_ID", "7:7:-1"), ("REAL_TOPIC", "first"), ("REAL_SUBSCRIPTION", "other")]
        s.deliver(0, entry_bytes(b"m", properties=said), redelivery_count=3)
        s.accept_producer()
        ((metadata, _),) = s.sends()
        assert dict(metadata.properties) == {**dict(said), "ORIGIN_MESSAGE_IDY_TIME": "1:0:-1"}

    def test_delivered_again_meanwhile_it_is_copied_once(self) -> None:
        """DLQ-06, DLQ-07: it is under way, and nobody asks for it."""
        s = LettersScript()
        s.message(0, redelivery_count=3)
        s.accept_producer()
        s.sends()
        s.message(0, redelivery_count=4)
        s.expect()
        assert s.permits() == 8
        s.confirm(0)
        s.expect("ACK")
        assert s.permits() == 10

    @pytest.mark.parametrize("group_time", [0.0, 60.0])
    def test_what_waits_of_an_earlier_delivery_is_taken_back(self, group_time: float) -> None:
        """It comes twice, the second time once too often: when the copies are safe, nothing is delivered."""
        s = LettersScript(
            acknowledgement_timeout=10.0,
            acknowledgement_timeout_tick=1.0,
            acknowledgement_group_time=group_time,
        )
        s.batch(0, 3, redelivery_count=2)
        first = s.receive()
        s.take()
        s.batch(0, 3, redelivery_count=3)
        s.batch(0, 3, redelivery_count=0)  # the broker has begun to count anew
        s.accept_producer()
        s.sends(3)
        for sequence_id in range(3):
            s.confirm(sequence_id)
        assert s.take() == []
        s.acknowledge(first)
        s.pass_time(30 * SECOND)
        assert "REDELIVER_UNACKNOWLEDGED_MESSAGES" not in [name for name, _ in s.frames()]
        assert s.permits() == 10

    @pytest.mark.parametrize("acknowledged", [False, True])
    def test_a_reconnect_meanwhile(self, acknowledged: bool) -> None:
        """The producer sends again what is not confirmed; the entry is acknowledged on the new connection,
        also where it had been acknowledged over the one before: that may be lost."""
        s = LettersScript()
        if acknowledged:
            s.message(0)
            given = s.receive()
        s.message(0, redelivery_count=3)
        s.accept_producer()
        s.sends()
        if acknowledged:
            s.acknowledge(given)
            s.frames()
        s.lose()
        s.pass_time(SECOND)
        for name, command in s.frames():
            reply = proto.CommandProducerSuccess(
                request_id=command.request_id, producer_name="d", last_sequence_id=-1, producer_ready=True
            )
            if name == "PRODUCER":
                s.say("PRODUCER_SUCCESS", reply)
            else:
                s.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
        s.frames()
        s.message(0, redelivery_count=4)
        s.confirm(0)
        s.expect("ACK")
        assert s.permits() == 10

    def test_confirmed_while_detached(self) -> None:
        """The topic is unloaded, the copy's is not."""
        s = LettersScript()
        s.message(0, redelivery_count=3)
        s.accept_producer()
        s.sends()
        s.close_by_broker()
        s.confirm(0)
        s.expect()
        s.pass_time(SECOND)
        s.accept()
        s.expect("ACK", "FLOW")
        assert s.permits() == 10


class TestFailure:
    def test_the_producer_is_refused(self) -> None:
        """DLQ-05: the entry stays, and everything is tried anew when it comes again."""
        s = LettersScript()
        s.outputs()
        s.message(0, redelivery_count=3)
        s.refuse_producer()
        (failed,) = s.outputs()
        assert isinstance(failed, LetterFailed)
        assert (failed.topic, str(failed.message_id)) == (f"{T}-dead", "1:0:-1")
        assert isinstance(failed.error, NotAllowed)
        assert s.permits() == 9
        s.pass_time(1100 * MILLISECOND)
        (request,) = s.expect(REDELIVER)
        assert places(request) == [(1, 0)]
        assert s.permits() == 10
        s.message(0, redelivery_count=4)
        s.accept_producer()
        s.sends()
        s.confirm(0, producer=1)
        s.expect("ACK")

    def test_it_never_goes_round_and_round(self) -> None:
        """Each time is a second after the one before, at least."""
        s = LettersScript(negative_acknowledgement_delay=0.0)
        s.message(0, redelivery_count=3)
        s.refuse_producer()
        s.pass_time(SECOND - 1)
        s.expect()
        s.pass_time(1)
        s.expect(REDELIVER)

    def test_with_those_that_wait_for_room(self) -> None:
        s = LettersScript(receiver_queue_size=1000)
        s.outputs()
        s.batch(0, MAX_IN_FLIGHT + 50, redelivery_count=3)
        s.refuse_producer()
        (failed,) = s.outputs()
        assert isinstance(failed, LetterFailed)
        s.pass_time(1100 * MILLISECOND)
        (request,) = s.expect(REDELIVER)
        assert places(request) == [(1, 0)]
        assert s.permits() == 1000

    def test_the_wait_may_grow(self) -> None:
        s = LettersScript(negative_acknowledgement_backoff=RedeliveryBackoff(1.0, 100.0, 2.0))
        s.message(0, redelivery_count=3)
        s.refuse_producer()
        s.pass_time(8 * SECOND - 1)
        s.expect()
        s.pass_time(SECOND)
        s.expect(REDELIVER)

    def test_delivered_again_before_it_is_asked_for_it_waits_all_the_same(self) -> None:
        s = LettersScript()
        s.message(0, redelivery_count=3)
        s.refuse_producer()
        s.message(0, redelivery_count=4)
        s.expect()
        assert s.permits() == 8
        s.pass_time(1100 * MILLISECOND)
        s.expect(REDELIVER)
        assert s.permits() == 10

    def test_a_reconnect_before_it_is_asked_for(self) -> None:
        s = LettersScript()
        s.message(0, redelivery_count=3)
        s.refuse_producer()
        s.reconnect()
        s.frames()
        s.pass_time(3 * SECOND)
        s.expect()
        assert s.permits() == 10
        s.message(0, redelivery_count=4)
        s.expect("PRODUCER")

    @pytest.mark.parametrize("when", ["under way", "failed"])
    @pytest.mark.parametrize("how", ["message", "id", "together", "cumulative"])
    def test_acknowledged_before_it_is_asked_for_it_is_not(self, when: str, how: str) -> None:
        """It had been delivered before, with a lower count."""
        s = LettersScript(EXCLUSIVE if how == "cumulative" else SHARED)
        s.message(0)
        if how == "together":
            given: Any = s.take_together()
        else:
            given = s.receive()
        s.message(0, redelivery_count=3)
        if when == "failed":
            s.refuse_producer()
        (s.acknowledge_cumulative if how == "cumulative" else s.acknowledge)(
            given.message_id if how == "id" else given
        )
        if when == "under way":
            producer, acknowledgement = s.frames()
            assert (producer[0], acknowledgement[0]) == ("PRODUCER", "ACK")
            request = producer[1].request_id
            s.say("ERROR", proto.CommandError(request_id=request, error=proto.NotAllowedError, message="no"))
        else:
            s.expect("ACK")
        s.pass_time(3 * SECOND)
        s.expect()
        assert s.permits() == 10
        s.message(1)
        s.acknowledge(s.receive())
        s.expect("ACK")

    def test_a_topic_without_memory_delivers_nothing_twice(self) -> None:
        s = LettersScript(topic="non-persistent://public/default/t")
        s.message(0, redelivery_count=3)
        assert s.receive() is not None

    def test_nobody_answers(self) -> None:
        s = LettersScript()
        s.outputs()
        s.message(0, redelivery_count=3)
        s.accept_producer()
        s.sends()
        for _ in range(4):
            s.pass_time(10 * SECOND)
            s.say("PING", proto.CommandPing())
        (failed,) = s.outputs()
        assert isinstance(failed, LetterFailed)
        assert isinstance(failed.error, TimedOut)
        s.expect(REDELIVER)  # and no ACK

    def test_one_of_a_batch_fails(self) -> None:
        s = LettersScript()
        s.batch(0, 2, redelivery_count=3)
        s.accept_producer()
        s.sends(2)
        s.confirm(0)
        s.say(
            "SEND_ERROR",
            proto.CommandSendError(producer_id=0, sequence_id=1, error=proto.NotAllowedError, message="no"),
        )
        s.pass_time(1100 * MILLISECOND)
        (request,) = s.expect(REDELIVER)
        assert places(request) == [(1, 0)]
        assert s.permits() == 10

    def test_what_waits_is_bounded_by_the_permits(self) -> None:
        """Nothing more is asked for while the copies go nowhere."""
        s = LettersScript(receiver_queue_size=4)
        for entry in range(4):
            s.message(entry, redelivery_count=3)
        s.expect("PRODUCER")
        assert s.permits() == 0

    def test_a_wish_of_a_queue_of_size_0_stands(self) -> None:
        """What went to the dead letters was not what somebody waited for."""
        s = LettersScript(receiver_queue_size=0)
        assert s.receive() is None
        s.expect("FLOW")
        s.message(0, redelivery_count=3)
        s.accept_producer()
        s.sends()
        s.confirm(0)
        _, flow = s.expect("ACK", "FLOW")
        assert flow.message_permits == 1
        s.message(1)
        assert s.receive().message_id[:2] == (1, 1)

    def test_closed_meanwhile(self) -> None:
        s = LettersScript()
        s.message(0, redelivery_count=3)
        s.accept_producer()
        s.sends()
        s.close()
        s.expect("CLOSE_PRODUCER", "CLOSE_CONSUMER")
        s.confirm(0)
        s.pass_time(5 * SECOND)
        s.expect()

    def test_nothing_is_left_when_the_client_is_closed(self) -> None:
        s = LettersScript()
        s.message(0, redelivery_count=3)
        s.accept_producer()
        s.sends()
        s.client.close(s.now)
        close, *_ = s.expect("CLOSE_PRODUCER", "CLOSE_CONSUMER")[1:]
        s.say("SUCCESS", proto.CommandSuccess(request_id=close.request_id))
        s.outputs()
        assert s.client.next_deadline() is None

    def test_after_a_seek_the_copy_judges_nothing(self) -> None:
        s = LettersScript()
        s.message(0, redelivery_count=3)
        s.accept_producer()
        s.sends()
        s.client.seek(s.now, s.consumer, EARLIEST)
        (seek,) = s.expect("SEEK")
        s.say("SUCCESS", proto.CommandSuccess(request_id=seek.request_id))
        s.frames()
        s.confirm(0)
        s.pass_time(2 * SECOND)
        assert "ACK" not in [name for name, _ in s.frames()]

    def test_clocks_are_set_now_and_then(self) -> None:
        s = LettersScript()
        s.client.set_time(s.now, WALL + 3_600_000)
        s.pass_time(SECOND)
        s.message(0, redelivery_count=3)
        s.accept_producer()
        ((metadata, _),) = s.sends()
        assert metadata.publish_time == WALL + 3_601_000

    def test_without_a_clock_it_is_refused(self) -> None:
        client = Client(0, ClientConfig("pulsar://x"), seed=1)
        with pytest.raises(InvalidConfiguration, match="wall_time"):
            client.subscribe(0, ConsumerSpec("t", "s", dead_letter=DeadLetterPolicy(1)))


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

    def test_from_the_retry_topic_it_is_put_off_once_more(self) -> None:
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

    def test_on_failure_it_comes_again(self) -> None:
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
        assert places(request_again) == [(1, 0)]

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

    def test_nobody_waits_for_it_any_more(self) -> None:
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
    """A message is put off, and what came before it is done."""

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
        """What comes behind it in the batch is still to be done."""
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

    def test_on_failure_everything_comes_again(self) -> None:
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
        assert places(again) == []  # all of them (REDEL-02)

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
        """SEEK-06: what lies before the message comes again, and must not be done with by a late copy."""
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
