"""Processes that work for a command of the simulator, and end with it."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import TimeoutError, get_context, resource_tracker
from multiprocessing.pool import Pool
from typing import TypeVar

Work = TypeVar("Work")
Result = TypeVar("Result")

LOOK_EVERY = 0.1
"""Seconds between two looks at whether the command is to end."""


@contextmanager
def workers(jobs: int, begin: Callable[[], object] | None = None) -> Iterator[Pool]:
    """A pool of `jobs` processes, each of which calls `begin` first; they are ended with the block.

    A terminal sends its Ctrl-C to them too. They are started with SIGINT blocked, so each of them gets only
    of its end, and prints no traceback, not even of its imports.
    """
    blocking = hasattr(signal, "pthread_sigmask")
    if blocking:
        resource_tracker.ensure_running()  # it unblocks the signal, so it has to be there before
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        pool = get_context("spawn").Pool(jobs, begin)
    finally:
        if blocking:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    with pool:
        yield pool


def in_order(
    pool: Pool, function: Callable[[Work], Result], work: Iterable[Work], end: Callable[[], bool]
) -> Iterator[Result]:
    """Give the result of `function` for each piece of work, in the order of the work, until `end` is true.

    Raises what `function` raised.
    """
    results = pool.imap(function, work)
    while not end():
        try:
            yield results.next(LOOK_EVERY)
        except TimeoutError:
            continue
        except StopIteration:
            return
