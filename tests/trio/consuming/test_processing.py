"""`Processing`: a block around a message, whose end acknowledges or negatively acknowledges the message."""

from functools import partial
from typing import Any

import pytest
import trio

from pulsar_sansio import ClosedError, LocalProtocolError, Message
from pulsar_trio.consuming.processing import Processing
from tests.client.broker_script import ConsumerScript


class Notes:
    """Stands for a consumer, and notes its acknowledgements."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def acknowledge(self, what: Message) -> None:
        self.calls.append(("acknowledge", what))

    def negative_acknowledge(self, what: Message) -> None:
        self.calls.append(("negative_acknowledge", what))


class Closed(Notes):
    def negative_acknowledge(self, what: Message) -> None:
        raise ClosedError("closed")


def received(consumer: Any) -> Message:
    s = ConsumerScript()
    s.accept()
    if consumer is not None:
        s.client.set_processing(s.consumer, partial(Processing, consumer))
    s.batch(0, 2)
    message: Message = s.receive()
    return message


async def process(message: Message, error: BaseException | None = None) -> None:
    async with message.processing() as same:
        assert same is message
        if error is not None:
            raise error


def run(block: Any) -> None:
    """Run a block, which waits for nothing, without an event loop."""
    with pytest.raises(StopIteration):
        block.send(None)


def test_a_processed_message_is_acknowledged() -> None:
    """Rule NACK-04."""
    consumer = Notes()
    message = received(consumer)
    run(process(message))
    assert consumer.calls == [("acknowledge", message)]


def test_a_failed_message_is_negatively_acknowledged_and_the_error_goes_on() -> None:
    """Rule NACK-04."""
    consumer = Notes()
    message = received(consumer)
    with pytest.raises(ZeroDivisionError):
        process(message, ZeroDivisionError()).send(None)
    assert consumer.calls == [("negative_acknowledge", message)]


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), GeneratorExit(), BaseExceptionGroup("x", [SystemExit()])]
)
def test_an_error_that_is_no_exception_leaves_the_message_alone(error: BaseException) -> None:
    """Rule NACK-04."""
    consumer = Notes()
    with pytest.raises(type(error)):
        process(received(consumer), error).send(None)
    assert consumer.calls == []


async def test_a_cancelled_block_leaves_the_message_alone() -> None:
    """Rule NACK-04."""
    consumer = Notes()
    with trio.CancelScope() as scope:
        async with received(consumer).processing():
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert consumer.calls == []


def test_an_error_counts_more_than_a_consumer_that_is_closed() -> None:
    with pytest.raises(ZeroDivisionError):
        process(received(Closed()), ZeroDivisionError()).send(None)


def test_a_message_of_a_client_driven_by_hand_is_not_processed() -> None:
    message = received(None)
    with pytest.raises(LocalProtocolError, match=r"1:0.* driven by hand"):
        message.processing()
