"""The close of a producer: which ends complete it, and what disturbs it no more."""

import pytest

from pulsar_sansio.client.outputs import (
    Closed,
    Receipts,
    RequestDone,
    SendFailed,
)
from pulsar_sansio.wire import proto
from tests.client.script import (
    WALL,
    Command,
    Script,
    frame_close_producer,
    frame_error,
    frame_receipt,
    frame_send_error,
    frame_success,
)


@pytest.mark.parametrize("end", ["error", "timeout", "lost", "closed by the broker"])
def test_any_end_of_a_close_is_a_close(end: str) -> None:
    """PROD-53: any answer completes the close. Rule PROD-20."""
    script = Script(keepalive_interval=1000.0)
    handle, link = script.ready_producer()
    request = script.client.close(script.now, handle)
    close = script.sent(link, Command.CLOSE_PRODUCER)
    match end:
        case "error":
            script.feed(link, frame_error(close.request_id, proto.UnknownError))
        case "timeout":
            script.advance(30)
        case "lost":
            script.lose(link)
        case _:
            script.feed(link, frame_close_producer())
    assert script.said() == [Closed(handle, None), RequestDone(request, None)]


def test_a_connection_lost_after_the_close_is_of_no_interest() -> None:
    script = Script()
    handle, link = script.ready_producer()
    script.client.close(script.now, handle)
    close = script.sent(link, Command.CLOSE_PRODUCER)
    script.feed(link, frame_success(close.request_id))
    script.said()
    script.lose(link)
    script.advance(60)
    assert script.said() == []
    assert script.client.next_deadline() is None


def test_a_send_error_while_closing_does_not_disturb_the_close() -> None:
    script = Script()
    handle, link = script.ready_producer(batching=None)
    script.client.send(script.now, handle, b"x", WALL)
    request = script.client.close(script.now, handle)
    _, close = script.sent(link, Command.SEND, Command.CLOSE_PRODUCER)
    script.feed(link, frame_send_error(0, proto.TopicTerminatedError), frame_success(close.request_id))
    outputs = script.said()
    assert [type(output) for output in outputs] == [SendFailed, Closed, RequestDone]
    assert outputs[-1] == RequestDone(request, None)


def test_receipts_that_come_before_the_answer_to_close_still_count() -> None:
    """PROD-52: the broker answers after the pending publishes are stored."""
    script = Script()
    handle, link = script.ready_producer(batching=None)
    script.client.send(script.now, handle, b"x", WALL)
    script.client.close(script.now, handle)
    _, close = script.sent(link, Command.SEND, Command.CLOSE_PRODUCER)
    script.feed(link, frame_receipt(0), frame_success(close.request_id))
    assert [type(output) for output in script.said()] == [Receipts, Closed, RequestDone]
