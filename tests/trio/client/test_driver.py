"""The client's driver with a machine that the test writes: where outputs go, and how failures end."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio
import trio.testing

from pulsar_sansio import (
    Address,
    ClientConfig,
    ClosedError,
    CredentialsFailed,
    InvalidMessage,
    PulsarError,
    Secret,
    TimedOut,
)
from pulsar_sansio import client_outputs as outputs
from pulsar_trio import InternalError
from pulsar_trio.client.driver import Driver
from pulsar_trio.client.driver_side import Outage
from pulsar_trio.client.endpoint import PendingResult
from pulsar_trio.errors import ResourceClosed
from pulsar_trio.security.identity import ClientIdentity

BROKER = Address("broker", 6650)


class Machine:
    """Says what the test put into `says`, and notes what it is told."""

    def __init__(self) -> None:
        self.says: deque[Any] = deque()
        self.told: list[tuple[Any, ...]] = []

    @property
    def has_output(self) -> bool:
        return bool(self.says)

    def next_output(self) -> Any:
        output = self.says.popleft() if self.says else None
        if isinstance(output, Exception):
            raise output
        return output

    def next_deadline(self) -> int | None:
        return None

    def data_to_send(self, link: int) -> Sequence[bytes]:
        raise AssertionError

    def report_requests(self, wanted: bool) -> None:
        pass

    def ask(self, now: int) -> int:
        return 7

    def abandon(self, now: int, identifier: int, owner: int | None) -> None:
        self.told.append(("abandon", identifier, owner))

    def push(self, now: int, producer: int) -> None:
        self.told.append(("push", producer))

    def provide_credentials(self, now: int, link: int, found: Secret) -> None:
        self.told.append(("provide", link))

    def refuse_credentials(self, now: int, link: int, error: PulsarError) -> None:
        self.told.append(("refuse", link, str(error)))


class Provider:
    """The identity of the client: gives what the test says."""

    def __init__(self) -> None:
        self.gives: Secret | CredentialsFailed = Secret("x")
        self.told: list[tuple[str, int]] = []

    async def credentials(self, wanted: outputs.CredentialsWanted, seconds: float) -> Secret:
        if isinstance(self.gives, CredentialsFailed):
            raise self.gives
        return self.gives

    def refused(self, link: int) -> None:
        self.told.append(("refused", link))

    def disconnected(self, link: int) -> None:
        self.told.append(("disconnected", link))


class Side:
    """An endpoint's side for the driver, which notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.endpoint: Any = None
        self.outage = Outage()

    def on_output(self, output: object) -> None:
        self.told.append(output)

    def end(self, error: PulsarError) -> None:
        self.told.append(("end", str(error)))

    def on_crash(self, failure: PulsarError) -> None:
        self.told.append(("crash", failure))


class NoNews:
    """Logs nothing."""

    def on_connected(self, handle: int) -> None:
        pass

    def on_detached(self, output: outputs.Detached) -> None:
        pass

    def on_closed(self, output: outputs.Closed) -> None:
        pass


class World:
    def __init__(self) -> None:
        self.provider = Provider()
        identity: ClientIdentity = self.provider  # type: ignore[assignment]
        self.driver = Driver(ClientConfig("pulsar://broker"), 1, identity, None)
        self.machine = Machine()
        self.driver.machine = self.machine  # type: ignore[assignment]
        self.driver._news = NoNews()  # type: ignore[assignment]
        self.side = self.driver.sides[3] = Side()  # type: ignore[assignment]

    def say(self, *output: object) -> None:
        self.machine.says += output
        self.driver.command(lambda now: None)


@asynccontextmanager
async def running(driver: Driver) -> AsyncIterator[None]:
    """Run the tasks of the driver; a failure of the block ends them too."""
    async with trio.open_nursery() as nursery:
        await nursery.start(driver.run)
        try:
            yield
        finally:
            driver.stop()


def mistaken(now: int) -> None:
    raise InvalidMessage("no message")


def closed(now: int) -> None:
    raise ClosedError("closed") from TimedOut("late")


def broken(now: int) -> None:
    raise ZeroDivisionError


# --- commands -----------------------------------------------------------------------------------------


async def test_a_mistake_of_the_caller_is_raised_and_ends_nothing() -> None:
    world = World()
    with pytest.raises(InvalidMessage):
        world.driver.command(mistaken)
    with pytest.raises(ResourceClosed) as caught:
        world.driver.command(closed)
    assert isinstance(caught.value.__cause__, TimedOut)
    assert world.driver.command(lambda now: "goes on") == "goes on"


async def test_a_machine_that_fails_ends_everything_with_one_error() -> None:
    world = World()
    answer = world.driver.answers[9] = PendingResult()
    with pytest.raises(InternalError) as caught:
        world.driver.command(broken)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert world.side.told == [("crash", caught.value)]
    for call in (lambda: world.driver.command(mistaken), lambda: world.say()):
        with pytest.raises(InternalError) as again:
            call()
        assert again.value is caught.value
    assert answer.error is caught.value
    world.driver.abandon(3)
    assert world.machine.told == [], "a failed machine is asked for nothing"


AFTER: list[Callable[[Driver], None]] = [Driver.after_call, Driver.after_urgent_call]


@pytest.mark.parametrize("after", AFTER)
async def test_a_machine_that_fails_after_a_call_per_message(after: Callable[[Driver], None]) -> None:
    world = World()
    world.machine.says.append(ZeroDivisionError())
    with pytest.raises(InternalError):
        after(world.driver)
    assert [told[0] for told in world.side.told] == ["crash"]  # type: ignore[index]


async def test_a_machine_that_fails_to_tell_its_deadline() -> None:
    world = World()
    world.machine.next_deadline = lambda: broken(0)  # type: ignore[method-assign]
    with pytest.raises(InternalError):
        world.driver.after_quiet_call()
    assert isinstance(world.driver.failure, InternalError)


async def test_an_exception_of_a_call_per_message_is_the_callers_or_ours() -> None:
    world = World()
    assert isinstance(world.driver.own_fault(InvalidMessage("no")), InvalidMessage)
    assert world.driver.failure is None
    assert isinstance(world.driver.own_fault(ZeroDivisionError()), InternalError)
    assert world.driver.failure is not None


# --- requests -----------------------------------------------------------------------------------------


async def test_an_answer_goes_to_the_task_that_asked() -> None:
    world = World()
    for output, settled in (
        (outputs.RequestDone(7, "done"), ("done", type(None))),
        (outputs.RequestFailed(7, TimedOut("x")), (None, TimedOut)),
    ):
        with world.driver.asked(world.machine.ask) as answer:
            world.say(output)
            assert (answer.value, type(answer.error)) == settled
            with suppress(TimedOut):
                await answer.get()
    assert world.machine.told == []
    assert world.driver.answers == {}


@pytest.mark.parametrize("answered", [False, True])
async def test_a_request_whose_answer_no_task_took_is_given_up(answered: bool) -> None:
    """The answer may have come to a task that was cancelled meanwhile."""
    world = World()
    with world.driver.asked(world.machine.ask, owner=3):
        if answered:
            world.say(outputs.RequestDone(7, None))
    assert world.machine.told == [("abandon", 7, 3)]
    assert world.driver.answers == {}
    world.say(outputs.RequestDone(7, None), outputs.RequestFailed(7, TimedOut("x")))


async def test_an_answer_that_comes_at_once_is_not_lost() -> None:
    world = World()
    world.machine.says.append(outputs.RequestDone(7, "at once"))
    with world.driver.asked(world.machine.ask) as answer:
        assert answer.value == "at once"


# --- outputs ------------------------------------------------------------------------------------------

TO_ONE = [
    outputs.Writable(3),
    outputs.Deliverable(3),
    outputs.ProducerFailed(3, TimedOut("x")),
    outputs.ConsumerFailed(3, TimedOut("x")),
    outputs.Detached(3, TimedOut("x")),
    outputs.Attached(3),
    outputs.TableViewReady(3, "t"),
    outputs.Closed(3, None),
]


@pytest.mark.parametrize("output", TO_ONE, ids=lambda output: type(output).__name__)
async def test_an_output_goes_to_its_endpoint_alone(output: Any) -> None:
    world = World()
    other = world.driver.sides[4] = Side()  # type: ignore[assignment]
    world.say(output)
    assert world.side.told == [output]
    del world.driver.sides[3]
    world.say(output)
    assert world.side.told == [output], "an endpoint that is gone is told nothing"
    assert other.told == []


async def test_closing_tells_every_task_that_waits() -> None:
    world = World()
    answer = world.driver.answers[9] = PendingResult()
    world.driver.shut()
    assert world.side.told == [("end", "the client is closed")]
    assert isinstance(answer.error, ResourceClosed)
    with pytest.raises(ResourceClosed):
        world.driver.command(mistaken)
    world.driver.abandon(3)
    assert world.machine.told == []


# --- tasks --------------------------------------------------------------------------------------------


async def test_producers_are_pushed_once_when_other_tasks_have_run() -> None:
    world = World()
    async with running(world.driver):
        await trio.testing.wait_all_tasks_blocked()
        for producer in (3, 4, 3):
            world.driver.push_soon(producer)
        assert world.machine.told == []
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(world.machine.told) == [("push", 3), ("push", 4)]


async def test_a_producer_that_was_closed_before_its_push_disturbs_no_other() -> None:
    world = World()

    def push(now: int, producer: int) -> None:
        world.machine.told.append(("push", producer))
        closed(now)

    world.machine.push = push  # type: ignore[method-assign]
    async with running(world.driver):
        await trio.testing.wait_all_tasks_blocked()
        for producer in (3, 4):
            world.driver.push_soon(producer)
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(world.machine.told) == [("push", 3), ("push", 4)]


@pytest.mark.parametrize("gives", [Secret("x"), CredentialsFailed("none")], ids=["given", "failed"])
@pytest.mark.parametrize("ended", [False, True])
async def test_credentials_go_to_the_machine_and_are_forgotten_with_their_link(
    gives: Secret | CredentialsFailed, ended: bool
) -> None:
    world = World()
    world.provider.gives = gives
    async with running(world.driver):
        if not ended:
            world.driver.links[5] = object()  # type: ignore[assignment]
        world.say(outputs.CredentialsWanted(5, BROKER, "token", None))
        await trio.testing.wait_all_tasks_blocked()
        world.driver.links.clear()
    expected = ("provide", 5) if isinstance(gives, Secret) else ("refuse", 5, "none")
    assert world.machine.told == [expected]
    assert world.provider.told == ([("disconnected", 5)] if ended else [])


@pytest.mark.parametrize("refused", [False, True])
async def test_refused_credentials_are_not_shown_again(refused: bool) -> None:
    world = World()
    world.say(outputs.Disconnect(5, "no", credentials_refused=refused))
    assert world.provider.told == ([("refused", 5)] if refused else [])
