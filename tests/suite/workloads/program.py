"""Runs the Java program of workloads, and disturbs its broker in each of its rounds."""

import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import trio

from tests.interop.programs import java_workload_command

AFTER_THE_DISTURBANCE = 1.6
"""Seconds until the next round: the program sends the messages of a round in one second, and a Failover
subscription delivers one second after its active consumer came."""

INTO_THE_ROUND = 0.4
"""Seconds from the begin of a round to its disturbance: messages are on their way then."""

Disturb = Callable[[int], Awaitable[None]]
"""Is called with the number of the round, and returns when the broker can be reached again."""


@dataclass
class Outcome:
    """The program's answers."""

    rounds: int = 0
    """The number of rounds; each was disturbed once."""
    scenarios: dict[str, str] = field(default_factory=dict)
    """Name -> "ok" or "failed"."""
    reports: dict[str, str] = field(default_factory=dict)
    """Name -> figures, or the reason why the scenario failed."""

    @property
    def failures(self) -> list[str]:
        return [f"{name}: {self.reports[name]}" for name, state in self.scenarios.items() if state != "ok"]

    def note(self, line: str) -> None:
        match line.split("\t"):
            case ["scenario", name, state, report]:
                self.scenarios[name] = state
                self.reports[name] = report


async def run_workload(arguments: list[str], disturb: Disturb) -> Outcome:
    """Run the program; `arguments` are those of Workload.java. Raises `Unavailable`."""
    outcome = Outcome()
    command = [*await trio.to_thread.run_sync(java_workload_command), *arguments]
    async with trio.open_nursery() as nursery:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        process: trio.Process = await nursery.start(partial(trio.run_process, command, check=False, **pipes))
        assert process.stdin is not None
        assert process.stdout is not None
        async for line in _lines(process.stdout):
            if line.startswith("rounds\t"):
                outcome.rounds = int(line.split("\t")[1])
            elif line == "ready":
                nursery.start_soon(_disturb_rounds, process.stdin, outcome.rounds, disturb)
            else:
                outcome.note(line)
    return outcome


async def _disturb_rounds(stdin: trio.abc.SendStream, rounds: int, disturb: Disturb) -> None:
    async with stdin:
        for number in range(rounds):
            await stdin.send_all(b"round\n")
            await trio.sleep(INTO_THE_ROUND)
            await disturb(number)
            await trio.sleep(AFTER_THE_DISTURBANCE)


async def _lines(stream: trio.abc.ReceiveStream) -> AsyncIterator[str]:
    rest = b""
    async for data in stream:
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace").rstrip()
