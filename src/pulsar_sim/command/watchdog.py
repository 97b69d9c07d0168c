"""The watchdog ends a simulated world that does not return.

The simulator has no clock. It notices a machine that is woken for ever at one instant, but not an endless
loop within one call of a machine. The command would wait for ever, and not know for which world.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from .. import LivenessError

STUCK_AFTER = 600.0
"""Seconds of processor time; a world takes a tenth of one, the longest a few."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise a `LivenessError` (INV-N6) in the code within, once it has taken so much processor time.

    Use it in the main thread of a process. It has no effect on systems without such a timer (Windows).
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    def over(_: int, frame: FrameType | None) -> None:
        where = "" if frame is None else f", now in {frame.f_code.co_qualname}, line {frame.f_lineno}"
        raise LivenessError("INV-N6", f"takes more than {seconds:g} s of processor time{where}")

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
