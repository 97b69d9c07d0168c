"""Dead letters and messages to be consumed later."""

import re
from typing import Any

import pytest

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.letter_topics.copy_producer import MAX_IN_FLIGHT
from pulsar_sansio.client.outputs import LetterFailed
from pulsar_sansio.model.config import (
    ClientConfig,
    ConsumerSpec,
    DeadLetterPolicy,
    RedeliveryBackoff,
)
from pulsar_sansio.model.errors import (
    InvalidConfiguration,
    NotAllowed,
    TimedOut,
)
from pulsar_sansio.model.message_id import EARLIEST
from pulsar_sansio.wire import MessageCommand, proto
from tests.client.acknowledging.test_redelivery import EXCLUSIVE, SHARED, positions
from tests.client.broker_script import (
    MILLISECOND,
    SECOND,
    WALL,
    entry_bytes,
)
from tests.client.letter_topics.letters_script import REDELIVER, LettersScript, T


class TestDeadLetters:
    def test_up_to_the_maximum_it_is_delivered(self) -> None:
        """DLQ-03, DLQ-09: the test is "exceeds"; seen: java-dead-letter. Rule REDEL-07."""
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

    @pytest.mark.parametrize("null_key", [False, True])
    def test_the_copy_of_a_message_with_a_null_key_has_one(self, null_key: bool) -> None:
        """SCHEMA-09, DLQ-04: a pair with a null key is not a message without a key."""
        s = LettersScript()
        s.deliver(5, entry_bytes(b"poison", null_partition_key=null_key), redelivery_count=3)
        s.accept_producer()
        ((metadata, _),) = s.sends()
        assert (metadata.partition_key, metadata.null_partition_key) == (None, null_key)

    def test_the_initial_subscription(self) -> None:
        s = LettersScript(dead_letter=DeadLetterPolicy(1, initial_subscription="init"))
        s.message(0, redelivery_count=2)
        producer = s.accept_producer()
        assert producer.topic == f"{T}-s-DLQ"  # DLQ-01
        assert producer.initial_subscription_name == "init"

    def test_all_partitions_share_one_default_topic(self) -> None:
        """Rules CONS-07 and DLQ-02."""
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
        """DLQ-06, DLQ-07: the copy is under way, and the client does not request the message."""
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
        """The message comes twice, the second time once too often: when the copies are safe, nothing is
        delivered."""
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
        """DLQ-05: the entry stays, and everything is tried anew when it is redelivered."""
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
        assert positions(request) == [(1, 0)]
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
        assert positions(request) == [(1, 0)]
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
        """Rule DLQ-08."""
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
        """The message had been delivered before, with a lower count. Rule DLQ-08."""
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

    def test_no_answer_comes(self) -> None:
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
        assert positions(request) == [(1, 0)]
        assert s.permits() == 10

    def test_what_waits_is_bounded_by_the_permits(self) -> None:
        """Nothing more is asked for while the copies go nowhere."""
        s = LettersScript(receiver_queue_size=4)
        for entry in range(4):
            s.message(entry, redelivery_count=3)
        s.expect("PRODUCER")
        assert s.permits() == 0

    def test_a_wish_of_a_queue_of_size_0_stands(self) -> None:
        """A dead-lettered message is not the one that a request waited for."""
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
