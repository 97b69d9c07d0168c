"""Runs of hostile peers: many rounds of both sides, over a time, on several processors.

A round is a pure function of its side and its seed, so that one that went wrong can be played again by
itself. Every few rounds one has its memory traced and compared with what its configuration allows.
"""

import gc
import time
import traceback
import tracemalloc
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from resource import RUSAGE_SELF, getrusage

from fuzz.bounds import broker_bound, client_bound, fed_bound
from fuzz.broker_side import BrokerRound
from fuzz.client_options import CONSUMERS, HOME, LIMIT, config, consumer_spec
from fuzz.client_side import ClientRound
from fuzz.draws import Draws
from fuzz.mutations import cases
from fuzz.payloads import CODECS, bomb
from fuzz.reports import Report, Violation
from pulsar_sansio import SubscriptionType

FRAMES = 400
"""Hostile frames of one round."""

TRACED_EVERY = 25
"""One of this many rounds has its memory traced, which makes it several times slower."""

CASES_PER_FRAME = 0.2
"""The cases by which one round is ahead of the round before it, for each frame. Both sides take turns, so it
is half of the part of frames that are a single case."""

SIDES: dict[str, type[ClientRound] | type[BrokerRound]] = {"client": ClientRound, "broker": BrokerRound}
"""The kinds of rounds, by the side that is under attack."""


def play(side: str, seed: int, *, frames: int = FRAMES, traced: bool = False) -> Report:
    """Play one round. The report has its failures, each with the way to play it again."""
    report = Report(side)
    first_case = int(seed * frames * CASES_PER_FRAME)
    if traced:
        _warm_up()
        gc.collect()
        tracemalloc.start()
    try:
        machine = SIDES[side](Draws.of_seed(seed), report, first_case)
        machine.run(frames)
        if traced:
            _, report.peak = tracemalloc.get_traced_memory()
            report.traced = 1
            report.bound = _bound(machine, report)
            if report.peak > report.bound:
                raise Violation(f"{report.peak} bytes were held, allowed are {report.bound}")
    except Exception as error:
        where = "".join(traceback.format_exception(error)[-4:])
        report.failures.append(f"python -m fuzz hostile --replay {side}:{seed}\n{where}")
    finally:
        if traced:
            tracemalloc.stop()
    return report


def _warm_up() -> None:
    """Make the objects that are made once, so that no round is charged for them."""
    cases()
    for codec in CODECS:
        bomb(codec)


def _bound(machine: ClientRound | BrokerRound, report: Report) -> int:
    """The lesser of two bounds: of the configuration, and of the bytes of this round."""
    return min(_configured(machine), fed_bound(report.bytes, machine.mischief.inflatable, LIMIT))


def _configured(machine: ClientRound | BrokerRound) -> int:
    if isinstance(machine, BrokerRound):
        return broker_bound(machine.config, machine.most_stored, machine.most_entries)
    spec = consumer_spec("theirs", SubscriptionType.SHARED, True)
    return client_bound(config(HOME), [spec] * CONSUMERS, machine.most_links)


def _work(seeds: range, sides: tuple[str, ...], until: float, rounds: int, frames: int | None) -> Report:
    """Play the rounds of one process, up to a time, a number of rounds, or a number of frames."""
    warnings.simplefilter("error")
    total = Report()
    begun = time.process_time()
    for done, seed in enumerate(seeds):
        if time.monotonic() >= until or done >= rounds:
            break
        total.add(play(sides[done % len(sides)], seed, traced=done % TRACED_EVERY == 1))
        if len(total.failures) >= 10 or (frames is not None and total.frames >= frames):
            break
    total.processor = time.process_time() - begun
    total.resident = getrusage(RUSAGE_SELF).ru_maxrss * 1024
    return total


def run(
    *,
    seconds: float,
    jobs: int = 1,
    seed: int = 1,
    sides: tuple[str, ...] = ("client", "broker"),
    rounds: int = 2**31,
    frames: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Rounds of both sides in turn, for `seconds`, or `rounds` or `frames` in each of `jobs` processes."""
    until = time.monotonic() + seconds
    parts = [range(seed + job, seed + 2**40, jobs) for job in range(jobs)]
    if jobs == 1:
        return _work(parts[0], sides, until, rounds, frames)
    total = Report()
    # Fresh processes: what this one has loaded and holds is nothing to them.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for future in [pool.submit(_work, part, sides, until, rounds, frames) for part in parts]:
            total.add(future.result())
            if progress is not None:
                progress(f"{total.frames} frames so far")
    return total
