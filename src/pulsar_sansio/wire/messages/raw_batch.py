"""`RawBatch`: the payload of a batch as the broker delivered it.

It is for an application that takes batches apart by other means, or not at all. A compressed payload stays so
until the application looks at it. The first look at a message splits the batch as every other
(`split_batch`), once. Before that, this module knows nothing of the meaning of the bytes.
"""

from collections.abc import Iterator, Sequence
from typing import overload

from ..compression import Compressed
from .batch import Batch, check_count, split_batch
from .metadata import SingleMessageMetadata


class RawBatch(Sequence[bytes]):
    """A batch of `size` messages, which begin at `start` in `data`: checked against its checksum, and not
    looked into. As a sequence it is the payloads.

    Looking at one of them raises `FrameError` when the batch is malformed, and `DecompressionFailed`.
    """

    __slots__ = ("_data", "_split", "size", "start")

    plain = True
    compacted = False
    """The attribute of `Batch`. A raw batch leaves no message out, with any headers."""

    def __init__(self, data: bytes | Compressed, size: int, start: int) -> None:
        """Raises `FrameError` where so many messages cannot be in it."""
        check_count(data, size, start)
        self._data = data
        self.size = size
        self.start = start
        self._split: Batch | None = None

    @property
    def data(self) -> bytes:
        """Decompressed when it is asked for first. Raises `DecompressionFailed`."""
        if isinstance(self._data, Compressed):
            self._data = self._data.decompress()
        return self._data

    @property
    def payloads(self) -> "RawBatch":
        """Itself."""
        return self

    def split(self) -> Batch:
        """The batch taken apart. Raises `FrameError` and `DecompressionFailed`."""
        if self._split is None:
            self._split = split_batch(self.data, self.size, self.start)
        return self._split

    def single(self, index: int) -> SingleMessageMetadata:
        """The header of member `index`. Raises `IndexError` beyond the batch, and as `split`."""
        return self.split().single(index)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.split().payloads)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        return self.split().payloads[index]
