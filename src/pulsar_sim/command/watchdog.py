"""Ends a simulated world that does not come back.

The simulator has no clock. It notices a machine that is woken for ever at one instant, and not a loop without
an end within one call of it: whoever runs worlds would wait for ever, and not know for which.
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
    """What runs within gets a `LivenessError` (INV-N6) once it has taken so much processor time.

    For the main thread of a process. Without effect on systems that have no such timer (Windows).
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
