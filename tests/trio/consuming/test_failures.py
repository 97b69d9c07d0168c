"""`run(on_failure=…)`: what becomes of a message whose handler raises; and `dead_letter`."""

import logging
from typing import Any

import pytest
import trio
import trio.testing

from pulsar_sansio import InvalidConfiguration, LocalProtocolError
from pulsar_trio import (
    Client,
    Consumer,
    DeadLetter,
    DeadLetterPolicy,
    EmbeddedBroker,
    FailurePolicy,
    Message,
    NegativeAcknowledge,
    OnFailure,
    OutgoingMessage,
    PulsarError,
    Raise,
    RetryLater,
)
from tests.patience import PATIENCE
from tests.trio.consuming.test_consumer import fill, filled, numbers_left
from tests.trio.waiting import until

DEAD = DeadLetterPolicy(10, "dead", "later", initial_subscription="s")


class BadNumberError(Exception):
    """The error with which the handlers here fail."""


class Failing:
    """A handler that fails at some numbers, the first `times` times."""

    def __init__(self, *numbers: int, times: int = 1000) -> None:
        self.numbers = numbers
        self.times = dict.fromkeys(numbers, times)
        self.handled: list[int] = []
        self.failed: list[int] = []

    async def handle(self, message: Message) -> None:
        number = int(message.data)
        if self.times.get(number, 0):
            self.times[number] -= 1
            self.failed.append(number)
            raise BadNumberError(number)
        self.handled.append(number)


async def run_until_handled(
    consumer: Consumer, failing: Failing, count: int, on_failure: FailurePolicy, concurrency: int = 1
) -> None:
    """Stop it when so many are handled, and every number that fails has failed."""
    stop = trio.Event()

    async def run() -> None:
        await consumer.run(failing.handle, concurrency=concurrency, stop=stop, on_failure=on_failure)

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await until(lambda: len(failing.handled) == count and {*failing.failed} == {*failing.numbers})
            stop.set()


async def dead_letters(client: Client, count: int, topic: str = "dead") -> list[Message]:
    async with client.subscribe(topic, "s") as consumer:
        with trio.fail_after(PATIENCE):
            found = [await consumer.receive() for _ in range(count)]
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert consumer.statistics().available == 0
        return sorted(found, key=lambda message: int(message.data))


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_negative_acknowledgement(client: Client, concurrency: int) -> None:
    failing = Failing(2, times=2)
    async with client.subscribe(
        "t", "s", initial_position="earliest", negative_acknowledgement_delay=0.01
    ) as consumer:
        await fill(client, "t", 5)
        await run_until_handled(consumer, failing, 5, NegativeAcknowledge(), concurrency)
    assert failing.failed == [2, 2]
    assert sorted(failing.handled) == list(range(5))
    assert await numbers_left(client) == []


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_retry_later(client: Client, concurrency: int) -> None:
    """Over the retry topic, with the properties, and acknowledged where it was."""
    failing = Failing(2, times=1)
    seen: list[Message] = []

    def later(message: Message, error: Exception) -> OnFailure:
        assert isinstance(error, BadNumberError)
        seen.append(message)
        return RetryLater(0.01, {"why": "busy"})

    async with client.subscribe(
        "t", "s", initial_position="earliest", retry=True, dead_letter=DEAD
    ) as consumer:
        await fill(client, "t", 5)
        await run_until_handled(consumer, failing, 5, later, concurrency)
    assert [int(message.data) for message in seen] == failing.failed == [2]
    assert sorted(failing.handled) == list(range(5))
    assert await numbers_left(client) == []


async def test_retry_later_goes_to_the_dead_letters_at_last(client: Client) -> None:
    failing = Failing(2)
    policy = DeadLetterPolicy(2, "dead", "later", initial_subscription="s")
    async with client.subscribe(
        "t", "s", initial_position="earliest", retry=True, dead_letter=policy
    ) as consumer:
        await fill(client, "t", 5)
        stop = trio.Event()
        async with trio.open_nursery() as nursery:

            async def run() -> None:
                await consumer.run(failing.handle, stop=stop, on_failure=RetryLater(0.0))

            nursery.start_soon(run)
            await until(lambda: len(failing.failed) == 3 and len(failing.handled) == 4)
            stop.set()
    (dead,) = await dead_letters(client, 1)
    assert (dead.data, dead.properties["RECONSUMETIMES"]) == (b"2", "3")


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_dead_letter_at_once(client: Client, concurrency: int) -> None:
    failing = Failing(1, 3)
    async with client.subscribe("t", "s", initial_position="earliest", dead_letter=DEAD) as consumer:
        await fill(client, "t", 5)
        await run_until_handled(consumer, failing, 3, DeadLetter({"why": "no use"}), concurrency)
        topic = consumer.topic
    assert sorted(failing.failed) == [1, 3]
    for message, number in zip(await dead_letters(client, 2), (1, 3), strict=True):
        assert int(message.data) == number
        assert message.properties["why"] == "no use"
        assert message.properties["REAL_TOPIC"] == topic
        assert message.properties["REAL_SUBSCRIPTION"] == "s"
    assert await numbers_left(client) == []


async def test_several_topics(broker: EmbeddedBroker, client: Client) -> None:
    broker.create_partitioned_topic("p", 2)
    policy = DeadLetterPolicy(10, "dead", "later", initial_subscription="s")
    failing = Failing(1, 3)
    async with client.subscribe(
        ["p", "t"], "s", initial_position="earliest", retry=True, dead_letter=policy
    ) as consumer:
        await fill(client, "p", 4)
        await until(lambda: consumer.statistics().available == 4)

        def decide(message: Message, error: Exception) -> OnFailure:
            return DeadLetter() if message.data == b"1" else RetryLater(0.0)

        failing.times[3] = 1
        await run_until_handled(consumer, failing, 3, decide, 2)
    (dead,) = await dead_letters(client, 1)
    assert dead.data == b"1"
    assert dead.properties["REAL_TOPIC"].startswith("persistent://public/default/p-partition-")
    assert await numbers_left(client) == []


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_raise(client: Client, concurrency: int) -> None:
    """`run` raises the exception itself, with its traceback; the message is redelivered, also while the
    consumer lives."""
    failing = Failing(0, times=1)
    async with client.subscribe(
        "t", "s", initial_position="earliest", negative_acknowledgement_delay=0.01
    ) as consumer:
        await fill(client, "t", 1)
        with pytest.raises(BadNumberError) as caught, trio.fail_after(PATIENCE):
            await consumer.run(failing.handle, concurrency=concurrency, on_failure=Raise())
        assert caught.value.args == (0,)
        assert "handle" in [entry.name for entry in caught.traceback]
        with trio.fail_after(PATIENCE):
            again = await consumer.receive()
        assert (again.data, again.redelivery_count) == (b"0", 1)


async def test_raise_cancels_the_other_handlers(client: Client) -> None:
    cancelled: list[int] = []

    async def handle(message: Message) -> None:
        if message.data == b"2":
            await trio.testing.wait_all_tasks_blocked()
            raise BadNumberError
        try:
            await trio.sleep_forever()
        finally:
            cancelled.append(int(message.data))

    async with filled(client, 10) as consumer:
        with pytest.raises(BadNumberError), trio.fail_after(PATIENCE):
            await consumer.run(handle, concurrency=3, on_failure=Raise())
    assert sorted(cancelled) == [0, 1]
    assert await numbers_left(client) == list(range(10))


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_function_that_raises_ends_the_run(client: Client, concurrency: int) -> None:
    def decide(message: Message, error: Exception) -> OnFailure:
        raise ZeroDivisionError

    failing = Failing(1)
    async with filled(client, 3) as consumer:
        with pytest.raises(ZeroDivisionError) as caught, trio.fail_after(PATIENCE):
            await consumer.run(failing.handle, concurrency=concurrency, on_failure=decide)
        assert isinstance(caught.value.__context__, BadNumberError)


WRONG: list[tuple[Any, str]] = [
    (None, "on_failure: NegativeAcknowledge"),
    ("raise", "on_failure: NegativeAcknowledge"),
    (NegativeAcknowledge, "on_failure: NegativeAcknowledge"),
    (RetryLater(1.0), "retry=True"),
    (DeadLetter(), "DeadLetterPolicy"),
]


@pytest.mark.parametrize(("wrong", "why"), WRONG)
async def test_what_is_no_action_here(client: Client, wrong: Any, why: str) -> None:
    """A wrong action is refused before a message is taken; where a function gives it, when it does."""
    failing = Failing(0)
    async with filled(client, 2) as consumer:
        with pytest.raises(InvalidConfiguration, match=why):
            await consumer.run(failing.handle, on_failure=wrong)
        assert failing.failed == []
        for concurrency in (1, 2):
            with pytest.raises(InvalidConfiguration, match=why), trio.fail_after(PATIENCE):
                await consumer.run(
                    failing.handle, concurrency=concurrency, on_failure=lambda message, error: wrong
                )
            consumer.redeliver_unacknowledged()


@pytest.mark.parametrize("delay", [-1, -0.1, float("inf"), float("nan"), "1", None, True])
def test_a_wrong_delay(delay: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="a delay in seconds"):
        RetryLater(delay)


@pytest.mark.parametrize("action", [DeadLetter(), RetryLater(0.0)])
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_a_copy_that_fails(
    client: Client, caplog: pytest.LogCaptureFixture, action: OnFailure, concurrency: int
) -> None:
    """The message is negatively acknowledged, that is logged, and the run goes on."""
    # The dead-letter topic is in a namespace that does not exist.
    # The messages were reconsumed later often enough.
    policy = DeadLetterPolicy(1, "public/nowhere/dead", "later")
    failing = Failing(1, times=1)
    async with client.subscribe(
        "t",
        "s",
        "exclusive",  # where the broker counts nothing
        initial_position="earliest",
        retry=True,
        dead_letter=policy,
        negative_acknowledgement_delay=0.01,
    ) as consumer:
        async with client.create_producer("t", batching=None) as producer:
            await producer.send_many(
                OutgoingMessage(b"%d" % number, properties={"RECONSUMETIMES": "1"}) for number in range(5)
            )
        await run_until_handled(consumer, failing, 5, action, concurrency)
    assert sorted(failing.handled) == list(range(5))
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "negatively acknowledged" in record.getMessage()
    assert await numbers_left(client) == []


async def test_the_log_names_the_action_and_no_property(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    failing = Failing(0)
    async with client.subscribe("t", "s", initial_position="earliest", dead_letter=DEAD) as consumer:
        await fill(client, "t", 2)
        await run_until_handled(consumer, failing, 1, DeadLetter({"token": "secret"}))
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert "DeadLetter" in record.getMessage()
    assert "secret" not in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[0] is BadNumberError


# --- dead_letter --------------------------------------------------------------------------------------


async def test_dead_letter_of_one_and_of_several(client: Client) -> None:
    async with client.subscribe("t", "s", initial_position="earliest", dead_letter=DEAD) as consumer:
        await fill(client, "t", 5)
        messages = [await consumer.receive() for _ in range(5)]
        await consumer.dead_letter(messages[0], {"why": "alone"})
        await consumer.dead_letter(messages[2:4])
        await consumer.dead_letter([])
        await consumer.flush()
    found = await dead_letters(client, 3)
    assert [int(message.data) for message in found] == [0, 2, 3]
    assert [message.properties.get("why") for message in found] == ["alone", None, None]
    assert await numbers_left(client) == [1, 4]


async def test_dead_letter_that_cannot_be(client: Client) -> None:
    async with filled(client, 1) as consumer:
        message = await consumer.receive()
        with pytest.raises(LocalProtocolError, match="DeadLetterPolicy"):
            await consumer.dead_letter(message)
        consumer.acknowledge(message)
    async with client.subscribe(
        "u", "s", initial_position="earliest", dead_letter=DeadLetterPolicy(1, "public/nowhere/dead")
    ) as consumer:
        await fill(client, "u", 1)
        message = await consumer.receive()
        with pytest.raises(PulsarError, match="not found"):
            await consumer.dead_letter(message)
    assert await numbers_left(client, "u") == [0]
