"""Cancel a call at every second step here, and at all of them by `python -m tests.triosim --calls`."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
import trio

from pulsar_trio import Consumer, Message, Producer, TableView
from pulsar_trio.client.driver import Driver
from pulsar_trio.client.endpoint import Endpoint
from pulsar_trio.client.table_view import Changes
from tests.triosim.__main__ import main
from tests.triosim.cancelling.scenes import SCENES, play_at, sweep

EVERY = 2
"""Steps from one run to the next, with another first one for each scene."""


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_cancelled_at_some_step(name: str) -> None:
    _, hits, failures = sweep(name, EVERY, first=list(SCENES).index(name) % EVERY)
    assert failures == []
    assert hits >= 3


def test_the_same_step_is_the_same_run() -> None:
    runs = [play_at("seek_of_a_consumer", step)[1].trace.hexdigest() for step in (5, 5, 20)]
    assert runs[0] == runs[1] != runs[2]


# --- bugs, planted one at a time --------------------------------------------------------------------------

_receive_many = Consumer.receive_many
_abandon = Driver.abandon


async def _receive_and_then_wait(self: Consumer) -> Message:
    receiving = self._receiving
    while (message := receiving._next()) is None:
        await receiving._wait()
    receiving._pass_on()
    await trio.lowlevel.checkpoint()
    return message


async def _receive_many_and_then_wait(self: Consumer, limit: int = 1000) -> Any:
    messages = await _receive_many(self, limit)
    await trio.lowlevel.checkpoint()
    return messages


def _abandon_the_owner(self: Driver, identifier: int, owner: int | None = None) -> None:
    _abandon(self, identifier if owner is None else owner)


async def _wait_and_then_unsubscribe(self: Consumer, *, force: bool = False) -> None:
    await trio.lowlevel.checkpoint()
    await self._request(self._machine.unsubscribe, force)
    await self._gone.wait()


async def _end_all_iterations(self: TableView) -> AsyncIterator[tuple[str, bytes | None]]:
    changes = Changes(self._table)
    self._listeners.add(changes)
    try:
        while True:
            while changes.pending:
                yield changes.take()
            await changes.something.park()
    finally:
        self._listeners.clear()


async def _enqueue_before_the_checkpoint(self: Producer, message: bytes, **fields: Any) -> Any:
    receipt = self.enqueue_nowait(message, **fields)
    await trio.lowlevel.checkpoint()
    return receipt


@dataclass(frozen=True, slots=True)
class Bug:
    """`found_in`: a scene that fails with it at some step."""

    owner: type
    method: str
    instead: Callable[..., Any]
    found_in: tuple[str, ...]


BUGS = {
    "receive takes before its last checkpoint": Bug(
        Consumer, "receive", _receive_and_then_wait, ("reading", "receiving_from_partitions")
    ),
    "receive_many takes before its last checkpoint": Bug(
        Consumer, "receive_many", _receive_many_and_then_wait, ("reading", "receiving_from_partitions")
    ),
    "a cancelled request closes its handle": Bug(
        Driver,
        "abandon",
        _abandon_the_owner,
        (
            "seek_of_a_consumer",
            "seek_of_partitions",
            "seek_of_a_reader",
            "refreshing_a_table_view",
            "asking_for_partitions",
        ),
    ),
    "a cancelled opening stays open": Bug(
        Endpoint,
        "_abandon",
        lambda self: None,
        (
            "opening_and_closing_a_reader",
            "opening_and_closing_a_table_view",
            "opening_and_closing_a_consumer_of_partitions",
            "closing_a_producer_of_partitions",
        ),
    ),
    "unsubscribe begins after a checkpoint": Bug(
        Consumer,
        "unsubscribe",
        _wait_and_then_unsubscribe,
        ("unsubscribe_of_a_consumer", "unsubscribe_of_partitions"),
    ),
    "one iteration over changes ends the others": Bug(
        TableView, "changes", _end_all_iterations, ("changes_of_a_table_view",)
    ),
    "enqueue takes before its last checkpoint": Bug(
        Producer, "enqueue", _enqueue_before_the_checkpoint, ("sending_to_partitions",)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "scene"), [(name, each) for name in BUGS for each in BUGS[name].found_in])
def test_a_planted_bug_is_found_at_some_step(name: str, scene: str) -> None:
    bug = BUGS[name]
    with patch.object(bug.owner, bug.method, bug.instead):
        failure, undisturbed = play_at(scene, None)
        assert not failure, f"undisturbed: {failure}"
        assert any(play_at(scene, step)[0] for step in range(undisturbed.length + 1))


def test_by_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--calls", "--scene", "seek_of_a_reader", "--step", "3", "--trace"]) == 0
    said = capsys.readouterr().out
    assert "cancelled: True" in said
    assert "passed" in said
    assert main(["--calls", "--scene", "seek_of_a_reader", "--every", "10"]) == 0
    assert "seek_of_a_reader: 3 of " in capsys.readouterr().out
