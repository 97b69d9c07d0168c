"""`ReceiveBuffer`: bytes on their way in, without needless copies.

The buffer knows that a frame begins with its size in four bytes, and nothing else about frames.
"""


class ReceiveBuffer:
    """Gathers the pieces of a frame that came in several reads.

    Pieces are joined once, when the whole frame is there, so that a large frame in small pieces costs one
    copy and not one per piece. The caller refuses frames over its limit as soon as their size is known, so
    the buffer never holds more than one frame and one read.
    """

    __slots__ = ("_length", "_needed", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0
        self._needed = 0

    def __len__(self) -> int:
        return self._length

    def feed(self, data: bytes) -> bytes | None:
        """Return the bytes to parse now: all held bytes and `data`; None while the frame is not complete."""
        if not self._pieces:
            return data
        self._pieces.append(data)
        self._length += len(data)
        if self._length < self._needed:
            return None
        joined = b"".join(self._pieces)
        self.clear()
        return joined

    def hold(self, data: bytes, position: int) -> None:
        """Keep the beginning of a frame: everything of `data` from `position` on."""
        rest = data[position:] if position else data
        if not rest:
            return
        self._pieces.append(rest)
        self._length = len(rest)
        self._needed = 4 + int.from_bytes(rest[:4], "big") if self._length >= 4 else 4

    def clear(self) -> None:
        self._pieces = []
        self._length = 0
        self._needed = 0
