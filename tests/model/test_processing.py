"""A block around a message: acknowledged, given back, or left alone; under any event loop, or none."""

import asyncio
from typing import Any

import pytest

from pulsar_sansio.model.errors import ClosedError, LocalProtocolError
from pulsar_sansio.model.message import Message
from pulsar_sansio.model.processing import Processing
from tests.client.broker_script import ConsumerScript


class Notes:
    """A judge that writes down what it is told."""

    def __init__(self) -> None:
        self.verdicts: list[tuple[str, Any]] = []

    def acknowledge(self, what: Message) -> None:
        self.verdicts.append(("acknowledge", what))

    def negative_acknowledge(self, what: Message) -> None:
        self.verdicts.append(("negative_acknowledge", what))


class Closed(Notes):
    def negative_acknowledge(self, what: Message) -> None:
        raise ClosedError("closed")


def received(judge: Notes | None) -> Message:
    s = ConsumerScript()
    s.accept()
    if judge is not None:
        s.client.set_ack_handler(s.consumer, judge)
    s.batch(0, 2)
    message: Message = s.receive()
    return message


async def process(message: Message, error: BaseException | None = None) -> None:
    async with message.processing() as same:
        assert same is message
        if error is not None:
            raise error


def run(block: Any) -> None:
    with pytest.raises(StopIteration):
        block.send(None)  # it never waits


def test_what_was_processed_is_acknowledged() -> None:
    """Rule NACK-04."""
    judge = Notes()
    message = received(judge)
    run(process(message))
    assert judge.verdicts == [("acknowledge", message)]


def test_what_failed_is_given_back_and_the_error_goes_on() -> None:
    """Rule NACK-04."""
    judge = Notes()
    message = received(judge)
    with pytest.raises(ZeroDivisionError):
        process(message, ZeroDivisionError()).send(None)
    assert judge.verdicts == [("negative_acknowledge", message)]


@pytest.mark.parametrize(
    "error",
    [asyncio.CancelledError(), KeyboardInterrupt(), GeneratorExit(), BaseExceptionGroup("x", [SystemExit()])],
)
def test_what_is_no_exception_leaves_it_alone(error: BaseException) -> None:
    """Rule NACK-04."""
    judge = Notes()
    with pytest.raises(type(error)):
        process(received(judge), error).send(None)
    assert judge.verdicts == []


def test_an_error_counts_more_than_a_consumer_that_is_closed() -> None:
    with pytest.raises(ZeroDivisionError):
        process(received(Closed()), ZeroDivisionError()).send(None)


def test_under_asyncio() -> None:
    judge = Notes()
    message = received(judge)
    asyncio.run(process(message))
    assert judge.verdicts == [("acknowledge", message)]


def test_without_an_ack_handler_processing_is_refused() -> None:
    message = received(None)
    with pytest.raises(LocalProtocolError, match="driven by hand"):
        message.processing()
    with pytest.raises(LocalProtocolError, match="1:0"):
        Processing(message, None)
