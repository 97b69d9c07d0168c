"""Fixed seeds pass, the same seed is the same run, and bugs that are planted are found.

The seeds are those that this machine of rules has to pass at every change; `python -m tests.triosim --seeds
200` runs as many more as one likes.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import trio

from pulsar_sansio import Message, OutgoingMessage, client_outputs
from pulsar_trio import Consumer
from pulsar_trio.consuming.receiving import Receiving
from pulsar_trio.producing.producer import Producer
from pulsar_trio.transport.link import Link
from tests.triosim.world import run_seed

SEEDS = 25
ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("seed", range(SEEDS))
def test_seed(seed: int) -> None:
    report = run_seed(seed)
    assert report.failure == ""
    assert report.received > 0


def test_the_same_seed_is_the_same_run() -> None:
    first, second, other = run_seed(5), run_seed(5), run_seed(6)
    assert first == second
    assert first.trace_hash != other.trace_hash


def test_the_same_seed_is_the_same_run_in_another_process() -> None:
    code = "from tests.triosim.world import run_seed; print(run_seed(7).trace_hash)"
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == run_seed(7).trace_hash


# --- bugs, planted one at a time --------------------------------------------------------------------------


async def _receive_and_then_wait(self: Consumer) -> Message:
    """Take the message before the last checkpoint: a task cancelled there loses the message."""
    receiving = self._receiving
    while (message := receiving._next()) is None:
        await receiving._wait()
    receiving._pass_on()
    await trio.lowlevel.checkpoint()
    return message


async def _wake_up_and_then_wait(self: Receiving[Any]) -> None:
    """Wait after waking: a task cancelled there has taken nothing, and no other task is woken in its
    place."""
    if self.is_drained:
        raise trio.EndOfChannel
    await self._arrived.park()
    await trio.lowlevel.checkpoint()


def _hear_twice(real: Callable[..., None]) -> Callable[..., None]:
    def on_output(self: Producer, output: Any) -> None:
        real(self, output)
        if isinstance(output, client_outputs.Receipts):
            real(self, output)

    return on_output


def _forget_the_rest(real: Callable[..., bool]) -> Callable[..., bool]:
    """Return a writer that stops as if it had been cancelled in the middle of a frame."""

    def write_leftover(self: Link, sock: Any) -> bool:
        all_written = real(self, sock)
        self._leftover.clear()
        return all_written

    return write_leftover


async def _enqueue_before_the_checkpoint(self: Producer, message: bytes, **fields: Any) -> Any:
    """In the window, and then cancelled: the caller thinks that it was never taken."""
    receipt = await self._enqueue_in_turn(OutgoingMessage(message, **fields))
    await trio.lowlevel.checkpoint()
    return receipt


async def _flush_at_once(self: Producer) -> None:
    await trio.lowlevel.checkpoint()


@dataclass(frozen=True, slots=True)
class Bug:
    """`found_by`: the rules that may find it."""

    owner: type
    method: str
    instead: Callable[..., Any]
    found_by: tuple[str, ...]


BUGS = {
    "receive takes before its last checkpoint": Bug(
        Consumer, "receive", _receive_and_then_wait, ("LIVENESS", "INV-C1", "INV-C3")
    ),
    "a wake-up is lost with the task that was woken": Bug(
        Receiving, "_wait", _wake_up_and_then_wait, ("WAKE", "LIVENESS")
    ),
    "a woken task does not pass on what it leaves": Bug(Receiving, "_pass_on", lambda self: None, ("WAKE",)),
    "a receipt is settled twice": Bug(
        Producer, "_on_output", _hear_twice(Producer._on_output), ("INV-P1", "INV-P7", "INV-P8", "WAKE")
    ),
    "a writer is cancelled in the middle of a frame": Bug(
        Link, "_write_leftover", _forget_the_rest(Link._write_leftover), ("BYTES",)
    ),
    "enqueue takes before its last checkpoint": Bug(
        Producer, "enqueue", _enqueue_before_the_checkpoint, ("INV-P5",)
    ),
    "flush does not wait": Bug(Producer, "flush", _flush_at_once, ("INV-P8",)),
    "a drained consumer goes on": Bug(Consumer, "_begin_drain", lambda self: None, ("STOP",)),
    "the writer is not woken": Bug(Link, "transmit", lambda self: None, ("INV-N7", "LIVENESS")),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    """Rules INV-P5 and INV-P8."""
    bug = BUGS[name]
    with patch.object(bug.owner, bug.method, bug.instead):
        for seed in range(60):
            failure = run_seed(seed).failure
            if failure:
                assert failure.startswith(bug.found_by), failure
                return
    pytest.fail("not found in 60 seeds")
