"""Explanations of pending messages, from an application's first message on."""

from pulsar_sansio.model.config import BatchingPolicy
from tests.client.script import Script, frame_receipt


def lines(script: Script, producer: int) -> list[str]:
    return script.client.explain(script.now, producer).split("\n  ")[1:]


def test_nothing_pending_is_said() -> None:
    script = Script()
    producer, _ = script.ready_producer()
    assert lines(script, producer) == ["no message is pending"]


def test_pending_messages_their_bytes_and_the_oldest() -> None:
    script = Script()
    producer, link = script.ready_producer(batching=None, max_pending_messages=3, send_timeout=30.0)
    for _ in range(2):
        script.client.send(script.now, producer, b"12345", 1)
        script.drain()
        script.advance(2)
    assert lines(script, producer) == [
        "2 of at most 3 messages are pending (max_pending_messages), with 10 bytes of payload",
        "the oldest pending message was sent 4.0 s ago; messages fail after the send timeout of 30 s",
    ]
    script.client.send(script.now, producer, b"12345", 1)
    assert lines(script, producer)[0].startswith("the window is full, 3 of at most 3 messages are pending")
    script.feed(link, frame_receipt(0))
    assert lines(script, producer)[1].startswith("the oldest pending message was sent 2.0 s ago")


def test_without_a_send_timeout_no_message_fails() -> None:
    script = Script()
    producer, _ = script.ready_producer(batching=None, send_timeout=0)
    script.client.send(script.now, producer, b"1", 1)
    assert lines(script, producer)[1] == "the oldest pending message was sent 0.0 s ago"


def test_an_open_batch_is_pending_and_not_sent() -> None:
    script = Script()
    producer, _ = script.ready_producer(batching=BatchingPolicy(max_delay=10.0))
    script.client.send(script.now, producer, b"123", 1)
    assert lines(script, producer) == [
        "1 of at most 10000 messages are pending (max_pending_messages), with 3 bytes of payload"
    ]


def test_memory_that_is_full_is_named_first() -> None:
    script = Script(memory_limit=10)
    producer, _ = script.ready_producer(batching=None)
    script.client.send(script.now, producer, b"12345678", 1)
    assert list(script.client.send_many(script.now, producer, [b"12345678"], 1)) == []
    assert lines(script, producer)[0] == (
        "the client's memory is full: producers hold 8 of 10 bytes (memory_limit)"
    )
