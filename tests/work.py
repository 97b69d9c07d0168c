"""A measure of work: the number of lines of the core that run, and bytes that are allocated on the way.

For tests that ask whether work grows with its cause or with the square of it. A clock says something else on
every machine; these numbers are the same on all of them. What is done in C without allocating, such as
comparing, is not seen.
"""

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pulsar_sansio

CORE = str(Path(pulsar_sansio.__file__).parent)
NOT_COUNTED = str(Path(CORE) / "conformance")
"""The checker of conversations watches a test, and is no part of its work."""

IN_PROPORTION = 6
"""Four times as much to do may be this many times the work: less than four where some of it is always the
same, a little more where things are sorted, sixteen where all is compared with all."""


class Work(NamedTuple):
    lines: int
    allocated: int
    """Bytes, kept or not; a list that grows in its place counts what it grows by."""


def work_of(act: Callable[[], object]) -> Work:
    """Measure the work of the core while `act` runs."""
    lines = allocated = before = 0

    def account() -> None:
        nonlocal allocated, before
        current, peak = tracemalloc.get_traced_memory()
        allocated += peak - before
        before = current
        tracemalloc.reset_peak()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines, before
        if event == "call":
            if not counted(frame):
                return None
            if not counted(frame.f_back):
                before = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                return trace
        elif event == "line":
            lines += 1
        account()
        return trace

    earlier = sys.gettrace()
    tracemalloc.start()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(earlier)
        tracemalloc.stop()
    return Work(lines, allocated)


def counted(frame: FrameType | None) -> bool:
    if frame is None:
        return False
    name = frame.f_code.co_filename
    return name.startswith(CORE) and not name.startswith(NOT_COUNTED)


def check_in_proportion(prepare: Callable[[int], Callable[[], object]], size: int) -> None:
    """`prepare(n)` gives what is to be done n times, or with n of something: it must not be n² work."""
    prepare(1)()  # what is only done once is done now
    some, more = work_of(prepare(size)), work_of(prepare(4 * size))
    assert more.lines < IN_PROPORTION * some.lines, (some, more)
    assert more.allocated < IN_PROPORTION * some.allocated, (some, more)
