"""Exclusive access: waiting producers, fenced producers, and the topic epoch after a reconnect."""

import pytest

from pulsar_sansio.client.outputs import Attached, Closed, ProducerFailed, ProducerReady, SendFailed
from pulsar_sansio.model.config import ProducerAccessMode, ProducerSpec
from pulsar_sansio.model.errors import InvalidConfiguration, ProducerFenced, ServerError
from pulsar_sansio.wire import encode_command, proto
from tests.client.script import (
    SECOND,
    WALL,
    Command,
    Script,
    frame_close_producer,
    frame_error,
    frame_producer_success,
)

WAITING = ProducerSpec(topic="t", access_mode=ProducerAccessMode.WAIT_FOR_EXCLUSIVE)
EXCLUSIVE = ProducerSpec(topic="t", access_mode=ProducerAccessMode.EXCLUSIVE, batching=None)


def queued(script: Script) -> tuple[int, int, int]:
    """A producer that the broker queues: its handle, its link, the id of its request."""
    handle = script.client.open_producer(script.now, WAITING)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    assert asked.producer_access_mode == proto.WaitForExclusive
    script.feed(link, frame_producer_success(asked.request_id, "chosen", ready=False))
    assert script.said() == []
    return handle, link, asked.request_id


@pytest.mark.parametrize("mode", ProducerAccessMode)
def test_the_mode_is_said(mode: ProducerAccessMode) -> None:
    script = Script()
    script.client.open_producer(script.now, ProducerSpec(topic="t", access_mode=mode))
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    name = proto.ProducerAccessMode.Name(asked.producer_access_mode)
    assert name.lower() == mode.value.replace("_", "")
    assert not asked.HasField("topic_epoch")


def test_waiting_has_no_end_and_begins_with_the_second_answer() -> None:
    script = Script()
    handle, link, request_id = queued(script)
    ticket = script.client.send(script.now, handle, b"early", WALL)
    for _ in range(600):  # five hours
        script.advance(30)
        for kind, _command in script.commands(link):
            assert kind == Command.PING
            script.feed(link, encode_command(Command.PONG, proto.CommandPong()))
    assert script.said() == []
    script.client.send(script.now, handle, b"later", WALL)
    script.feed(link, frame_producer_success(request_id, "chosen", topic_epoch=7))
    assert ProducerReady(handle, "chosen", -1, "persistent://public/default/t") in script.said()
    script.advance(0.01)
    send = script.sent(link, Command.SEND)
    assert (send.producer_id, send.num_messages) == (0, 2)  # unsealed messages waited with the producer
    assert ticket == 0


def test_whoever_waits_and_is_fenced_has_failed() -> None:
    script = Script()
    handle, link, request_id = queued(script)
    script.feed(link, frame_error(request_id, ServerError.ProducerFenced))
    failed = script.expect_one(ProducerFailed)
    assert isinstance(failed.error, ProducerFenced)
    assert failed.producer == handle


def test_a_producer_that_loses_the_connection_while_waiting_queues_again_under_its_name() -> None:
    script = Script()
    handle, link, _ = queued(script)
    script.lose(link)
    script.advance(0.2)
    link = script.ready_link()
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    assert (asked.producer_name, asked.epoch, asked.user_provided_producer_name) == ("chosen", 1, False)
    script.feed(link, frame_producer_success(asked.request_id, "chosen", ready=False))
    script.feed(link, frame_producer_success(asked.request_id, "chosen", topic_epoch=1))
    assert isinstance(script.expect_one(ProducerReady), ProducerReady)
    assert not [output for output in script.history if isinstance(output, ProducerFailed)]
    assert script.client.close(script.now, handle)


def test_only_a_producer_that_waits_can_be_made_to_wait() -> None:
    script = Script()
    script.client.open_producer(script.now, EXCLUSIVE)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id, ready=False))
    [gone] = script.said()
    assert "wait for exclusive access" in str(gone)


def exclusive(script: Script) -> tuple[int, int]:
    handle = script.client.open_producer(script.now, EXCLUSIVE)
    link = script.ready_link()
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.feed(link, frame_producer_success(asked.request_id, topic_epoch=3))
    script.expect_one(ProducerReady)
    return handle, link


def test_the_epoch_comes_along_on_every_reconnect() -> None:
    script = Script()
    handle, link = exclusive(script)
    for epoch, following in ((3, 4), (4, None), (4, 9)):
        script.feed(link, frame_close_producer())
        script.advance(0.2)
        script.find_topic(link)
        asked = script.sent(link, Command.PRODUCER)
        assert asked.topic_epoch == epoch
        script.feed(link, frame_producer_success(asked.request_id, topic_epoch=following))
        assert Attached(handle) in script.said()


def test_a_producer_that_comes_back_too_late_is_fenced_for_good() -> None:
    """java-access-fencing: pending messages fail, and the producer does not retry."""
    script = Script()
    handle, link = exclusive(script)
    ticket = script.client.send(script.now, handle, b"m", WALL)
    script.sent(link, Command.SEND)
    script.feed(link, frame_close_producer())
    script.advance(0.2)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    script.said()
    script.feed(link, frame_error(asked.request_id, ServerError.ProducerFenced))
    said = script.said()
    [failed] = [output for output in said if isinstance(output, SendFailed)]
    assert (failed.first, failed.count) == (ticket, 1)
    assert isinstance(failed.error, ProducerFenced)
    [closed] = [output for output in said if isinstance(output, Closed)]
    assert isinstance(closed.error, ProducerFenced)
    now = script.now
    script.advance(20)
    assert script.commands(link) == []
    assert script.now - now == 20 * SECOND


def test_lazy_start_needs_shared_access() -> None:
    with pytest.raises(InvalidConfiguration, match="lazy_start"):
        ProducerSpec(topic="t", access_mode=ProducerAccessMode.EXCLUSIVE, lazy_start=True)
