"""Functions of bytes: each hands them to one entry of the library and checks what may be said of the outcome.

A target returns where the outcome is right, be it a value or one of the errors that the entry declares;
everything else is an exception, which is what a fuzzer looks for.
"""

from collections.abc import Callable

from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import decode_frame, max_frame_size

Target = Callable[[bytes], None]

LIMIT = max_frame_size(64 * 1024)


def frame(data: bytes) -> None:
    """A stream of frames: it is cut the same way whole and with its end still missing."""
    position = 0
    try:
        while (found := decode_frame(data, position, LIMIT)) is not None:
            kind, _, behind = found
            assert kind is not None
            assert position + 8 <= behind <= len(data)
            position = behind
    except FrameError:
        return
    assert len(data) - position < 4 + LIMIT


TARGETS: dict[str, Target] = {"frame": frame}
