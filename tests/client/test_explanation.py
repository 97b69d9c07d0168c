"""`Client.explain` gives one text for each reason why nothing moves."""

import re
from typing import Any

import pytest

from pulsar_sansio.client.explanation import MAX_PARTS, MAX_REASON, reason
from pulsar_sansio.model.config import (
    OutgoingMessage,
    ProducerAccessMode,
    ProducerSpec,
    ReaderSpec,
    SubscriptionType,
    TableViewSpec,
)
from pulsar_sansio.model.errors import ConnectionLost, LocalProtocolError
from pulsar_sansio.model.message_id import EARLIEST
from pulsar_sansio.wire import proto
from tests.client.broker_script import ConsumerScript
from tests.client.letter_topics.letters_script import LettersScript
from tests.client.partitions.partitioned_script import PartitionedScript
from tests.client.script import SECOND, WALL, Command, Script, frame_error, frame_producer_success
from tests.client.topics_script import TopicsScript

HEADING = "producer 'p-1' on persistent://public/default/demo: "


def explained(script: Script, handle: int) -> list[str]:
    return script.client.explain(script.now, handle).splitlines()


class TestTheWay:
    """Return the first line, about the connection."""

    def test_connected(self) -> None:
        script = Script()
        handle, _ = script.ready_producer()
        script.advance(12.3)
        assert explained(script, handle)[0] == f"{HEADING}connected to broker:6650 for 12.3 s"

    def test_not_connected_since_why_and_when_the_next_attempt_is(self) -> None:
        script = Script(initial_backoff=8.0, max_backoff=8.0)
        handle, link = script.ready_producer()
        script.lose(link, "reset by peer")
        script.advance(2.0)
        line = explained(script, handle)[0]
        assert re.fullmatch(
            re.escape(HEADING)
            + r"not connected for 2\.0 s: broker:6650: reset by peer; next attempt in [56]\.\d s",
            line,
        )

    def test_the_reason_stays_while_the_next_attempt_is_under_way(self) -> None:
        script = Script()
        handle, link = script.ready_producer()
        script.lose(link, "reset by peer")
        script.advance(0.5)
        line = explained(script, handle)[0]
        assert "reset by peer" in line
        assert "; connecting to broker:6650 for 0.4 s" in line

    def test_never_connected(self) -> None:
        script = Script()
        handle = script.client.open_producer(script.now, ProducerSpec(topic="demo"))
        script.advance(1.0)
        assert explained(script, handle)[0] == (
            "producer on persistent://public/default/demo: not connected for 1.0 s, and never was; "
            "connecting to broker:6650 for 1.0 s"
        )

    def test_each_step_of_opening(self) -> None:
        script = Script()
        handle = script.client.open_producer(script.now, ProducerSpec(topic="demo"))
        link = script.ready_link()
        assert "asking how many partitions the topic has" in explained(script, handle)[0]
        script.check_partitions(link)
        assert "asking which broker serves the topic" in explained(script, handle)[0]
        script.find_topic(link)
        assert "waiting for broker:6650 to open it" in explained(script, handle)[0]

    def test_waiting_for_exclusive_access(self) -> None:
        script = Script()
        spec = ProducerSpec(topic="demo", access_mode=ProducerAccessMode.WAIT_FOR_EXCLUSIVE)
        handle = script.client.open_producer(script.now, spec)
        link = script.ready_link()
        script.check_partitions(link)
        script.find_topic(link)
        asked = script.sent(link, Command.PRODUCER)
        script.feed(link, frame_producer_success(asked.request_id, "p-1", ready=False))
        script.advance(20)
        line = explained(script, handle)[0]
        assert "waiting for exclusive access for 20.0 s: another producer has it" in line

    def test_closing_and_closed(self) -> None:
        script = Script()
        handle, link = script.ready_producer()
        script.client.close(script.now, handle)
        script.advance(1.0)
        assert "closing: broker:6650 was told 1.0 s ago and has not answered" in explained(script, handle)[0]
        script.lose(link)
        assert explained(script, handle) == [f"{handle}: closed"]

    def test_failed(self) -> None:
        script = Script()
        handle = script.client.open_producer(script.now, ProducerSpec(topic="demo"))
        link = script.ready_link()
        script.check_partitions(link)
        script.find_topic(link)
        asked = script.sent(link, Command.PRODUCER)
        script.feed(link, frame_error(asked.request_id, 16, "taken"))
        (line,) = explained(script, handle)
        assert line.startswith(f"{handle}: closed: ProducerBusy: taken")

    def test_an_id_that_was_never_given(self) -> None:
        script = Script()
        with pytest.raises(LocalProtocolError, match="no producer or consumer has the id 7"):
            script.client.explain(script.now, 7)

    def test_a_long_reason_is_cut(self) -> None:
        text = reason(ConnectionLost("x" * 10_000))
        assert text == ": " + "x" * MAX_REASON + "…"


class TestProducers:
    def test_nothing_pending(self) -> None:
        script = Script()
        handle, _ = script.ready_producer()
        assert explained(script, handle)[1:] == ["  no message is pending"]

    def test_pending_messages_and_how_long_the_oldest_waits(self) -> None:
        script = Script()
        handle, _ = script.ready_producer(batching=None, max_pending_messages=5, send_timeout=30.0)
        for _ in range(3):
            script.client.send(script.now, handle, b"12345", WALL)
        script.advance(4.0)
        assert explained(script, handle)[1:] == [
            "  3 of at most 5 messages are pending (max_pending_messages), with 15 bytes of payload",
            "  the oldest pending message was sent 4.0 s ago; messages fail after the send timeout of 30 s",
        ]

    def test_the_window_is_full(self) -> None:
        script = Script()
        handle, _ = script.ready_producer(batching=None, max_pending_messages=2)
        script.client.send_many(script.now, handle, [b"x"] * 3, WALL)
        assert "the window is full, 2 of at most 2 messages" in explained(script, handle)[1]

    def test_the_memory_of_the_client_is_full(self) -> None:
        script = Script(memory_limit=100)
        handle, _ = script.ready_producer(batching=None)
        script.client.send_many(script.now, handle, [b"x" * 60] * 2, WALL)
        assert explained(script, handle)[1] == (
            "  the client's memory is full: producers hold 60 of 100 bytes (memory_limit)"
        )

    def test_messages_before_it_was_ever_connected_are_pending(self) -> None:
        script = Script()
        handle = script.client.open_producer(script.now, ProducerSpec(topic="demo"))
        script.client.send(script.now, handle, b"12345", WALL)
        assert "1 of at most" in explained(script, handle)[1]

    def test_neither_payloads_nor_keys_nor_properties_are_in_it(self) -> None:
        """Rule INV-X1."""
        script = Script()
        handle, link = script.ready_producer(batching=None, properties={"token": "secret-1"})
        message = OutgoingMessage(b"secret-2", key="secret-3", properties={"p": "secret-4"})
        script.client.send(script.now, handle, message, WALL)
        assert "secret" not in script.client.explain(script.now, handle)
        script.lose(link)
        assert "secret" not in script.client.explain(script.now, handle)


class TestConsumers:
    def lines(self, s: ConsumerScript) -> list[str]:
        return s.client.explain(s.now, s.consumer).splitlines()

    def started(self, **spec: Any) -> ConsumerScript:
        spec.setdefault("subscription_type", SubscriptionType.SHARED)
        s = ConsumerScript(receiver_queue_size=10, **spec)
        s.accept()
        s.frames()
        return s

    def test_permits_queue_and_what_is_not_acknowledged(self) -> None:
        s = self.started(acknowledgement_group_time=100.0)
        s.batch(1, 4)
        s.message(2)
        for _ in range(3):
            s.receive()
        assert self.lines(s) == [
            "consumer on persistent://public/default/t, subscription 's': connected to broker:6650 for 0.0 s",
            "  5 permits are at the broker, for a queue of 10",
            "  2 messages are in the receiver queue and wait for the application",
            "  at most 3 messages are delivered and not acknowledged; a broker stops at a limit (usually "
            "50000 for one consumer)",
        ]

    def test_acknowledged_messages_do_not_count(self) -> None:
        s = self.started(acknowledgement_group_time=100.0)
        s.batch(1, 4)
        s.message(2)
        messages = s.take()
        s.acknowledge(messages[:4])
        lines = self.lines(s)
        assert "  at most 1 messages are delivered and not acknowledged" in lines[3]
        assert "  1 acknowledgements wait to be sent" in lines
        s.acknowledge(messages[4])
        assert "at most 0 messages" in self.lines(s)[3]

    def test_a_new_connection_begins_anew(self) -> None:
        s = self.started(acknowledgement_group_time=0.0)
        for entry in range(5):
            s.message(entry)
        for message in s.take()[:2]:
            s.acknowledge(message)
        s.reconnect()
        assert "at most 0 messages" in self.lines(s)[3]
        s.message(2)
        s.take()
        assert "at most 1 messages" in self.lines(s)[3]

    def test_paused(self) -> None:
        s = self.started()
        s.client.pause(s.now, s.consumer)
        assert "  paused: it asks for no more messages until resume" in self.lines(s)
        s.client.resume(s.now, s.consumer)
        assert "paused" not in "".join(self.lines(s))

    def test_not_the_active_consumer(self) -> None:
        s = self.started(subscription_type=SubscriptionType.FAILOVER)
        s.say("ACTIVE_CONSUMER_CHANGE", proto.CommandActiveConsumerChange(consumer_id=0, is_active=False))
        assert "  not the active consumer of this Failover subscription: another one is" in self.lines(s)
        s.say("ACTIVE_CONSUMER_CHANGE", proto.CommandActiveConsumerChange(consumer_id=0, is_active=True))
        assert "Failover" not in "".join(self.lines(s))

    def test_a_queue_of_size_zero(self) -> None:
        s = ConsumerScript(receiver_queue_size=0)
        s.accept()
        assert "asks for a message when the application waits for one" in self.lines(s)[1]
        s.receive()
        assert self.lines(s)[1] == "  1 permits are at the broker, for a queue of 0"

    def test_the_end_of_the_topic(self) -> None:
        s = self.started()
        s.say("REACHED_END_OF_TOPIC", proto.CommandReachedEndOfTopic(consumer_id=0))
        assert "the topic is terminated" in self.lines(s)[-1]

    def test_on_an_exclusive_subscription_what_was_received_and_acknowledged(self) -> None:
        s = self.started(subscription_type=SubscriptionType.EXCLUSIVE, acknowledgement_group_time=0.0)
        s.message(1)
        s.message(2)
        s.acknowledge(s.take()[0])
        assert self.lines(s)[3] == (
            "  the application has received 2 messages; 1 acknowledgements were sent, one for a whole batch"
        )

    def test_what_waits_to_be_delivered_again(self) -> None:
        s = self.started()
        s.message(1)
        s.message(2)
        s.negative_acknowledge(s.take())
        assert "  2 entries are negatively acknowledged, and asked for after their delay" in self.lines(s)

    def test_what_is_on_its_way_to_the_dead_letters(self) -> None:
        s = LettersScript()
        s.message(1, redelivery_count=3)
        s.message(2, redelivery_count=3)
        assert "  2 entries wait until their copies are safe in the dead-letter topic" in self.lines(s)

    def test_a_reader(self) -> None:
        script = Script()
        handle = script.client.open_reader(script.now, ReaderSpec("demo", EARLIEST))
        first = explained(script, handle)[0]
        assert first.startswith("reader of persistent://public/default/demo: not connected")

    def test_a_table_view(self) -> None:
        script = Script()
        handle = script.client.open_table_view(script.now, TableViewSpec("demo"))
        first = explained(script, handle)[0]
        assert first.startswith(
            "table view of 0 keys, reader of persistent://public/default/demo: not connected"
        )


class TestSeveral:
    def test_of_a_partitioned_producer_each_partition_has_a_line(self) -> None:
        world = PartitionedScript(3)
        world.answer()
        world.ignore = {1}
        world.close_by_broker(1)
        world.answer()
        first, *others = explained(world.script, world.handle)
        assert first.endswith("2 of 3 partitions that are in use are connected")
        assert [line.split(":")[0] for line in others] == ["  partition 1", "  partition 0", "  partition 2"]
        assert "the broker closed the producer" in others[0]
        assert "connected to broker:6650" in others[1]

    def test_one_that_has_ended_says_why(self) -> None:
        world = PartitionedScript(2)
        world.answer()
        world.terminate(1)
        world.told()
        lines = explained(world.script, world.handle)
        assert any(line.startswith("  partition 1: ended: TopicTerminated") for line in lines)

    def test_partitions_that_were_never_used_are_not_in_it(self) -> None:
        world = PartitionedScript(4, lazy_start=True)
        world.answer()
        assert explained(world.script, world.handle)[0].endswith(
            "1 of 1 partitions that are in use are connected"
        )

    def test_of_a_consumer_of_several_topics_each_has_a_line(self) -> None:
        world = TopicsScript(("a", "b"), {"b": 2})
        world.ignore = {"b-partition-1"}
        world.answer()
        first, *others = explained(world.script, world.handle)
        assert "subscription 's': 2 of 3 topics and partitions are connected" in first
        assert others[0].startswith("  persistent://public/default/b-partition-1: not connected")
        assert "waiting for broker:6650 to open it" in others[0]
        assert len(others) == 3

    def test_there_is_a_limit(self) -> None:
        world = TopicsScript("t", {"t": 50})
        world.answer()
        lines = explained(world.script, world.handle)
        assert len(lines) == 2 + MAX_PARTS
        assert lines[-1] == "  and 40 more"


def test_it_changes_nothing() -> None:
    script = Script()
    handle, _ = script.ready_producer()
    script.client.send(script.now, handle, b"x", WALL)
    before = script.client.next_deadline()
    script.client.explain(script.now + SECOND, handle)
    assert script.client.next_deadline() == before
    assert script.said() == []
