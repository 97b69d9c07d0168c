"""`FrameReader`: cuts the bytes of one connection into frames, and recognises runs of uniform messages.

A reader owns the frame limit, and all decoders of its connection with their decode caches. The caller owns
the received bytes and decides which frames are legal.
"""

from collections.abc import Iterator
from typing import Any

from .frames import FrameDecoder
from .messages.metadata_decoder import MetadataDecoder
from .uniform.message_reader import MESSAGE_TAG, UniformMessageReader

NOT_UNIFORM = 16 * 1024
"""The number of bytes that are read frame by frame after a search for uniform messages found none.

Small batches follow one another, and a search takes a tenth of the time for reading one batch.
"""


class FrameReader:
    """Reads the frames of one connection. `limit`: the size of the largest legal frame, in bytes."""

    __slots__ = (
        "_decoder",
        "_uniform_messages",
        "declined",
        "limit",
        "metadata_decoder",
        "reads_uniform_messages",
    )

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.reads_uniform_messages = False
        """When False, each MESSAGE is yielded as a frame."""
        self.declined = False
        """Set by the caller to receive the last run again, frame by frame."""
        self.metadata_decoder = MetadataDecoder()
        """Decodes the metadata of the entries that the connection delivers."""
        self._decoder = FrameDecoder()
        self._uniform_messages = UniformMessageReader(self._decoder.deliveries, self.metadata_decoder)

    def frames(self, data: bytes) -> Iterator[tuple[int | None, Any, int]]:
        """Yield the complete frames of `data`, each as command type, command and end.

        A run of uniform messages has the type None, and a `UniformMessages` as command. A frame of an unknown
        command type has None as command. A new `limit` counts from the next frame. Raises `FrameError` for
        bytes that are no legal frame.
        """
        position = one_by_one_until = 0
        length = len(data)
        limit = self.limit
        take = self._uniform_messages.take
        decode = self._decoder.decode
        while position < length:
            if position >= one_by_one_until and data.startswith(MESSAGE_TAG, position + 8):
                run = take(data, position, limit) if self.reads_uniform_messages else None
                if run is None:
                    one_by_one_until = position + NOT_UNIFORM
                else:
                    yield None, run, run.end
                    if not self.declined:
                        position = run.end
                        continue
                    self.declined = False
                    one_by_one_until = run.end
            frame = decode(data, position, limit)
            if frame is None:
                return
            yield frame
            position = frame[2]
            limit = self.limit
