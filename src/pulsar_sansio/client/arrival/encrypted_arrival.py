"""`EncryptedArrival`: the arrival of entries at a consumer with a key reader.

An encrypted entry whose data key is not known yet waits for a private key. All later entries wait behind it,
whichever they are: order is kept. So a slow key reader holds up its own consumer only. Entries that wait have
not been looked at otherwise: they use up permits when their turn comes.
"""

from collections import deque

from ...model.errors import ChecksumMismatch, FrameError
from ...wire import (
    MessageCommand,
    MessageMetadata,
    MetadataDecoder,
    OpenedPayload,
    UniformMessages,
    open_payload,
)
from ..delivery.permits import (
    MAX_BYTES_BEYOND_GRANT,
    MAX_ENTRIES_BEYOND_GRANT,
    Permits,
    PermitsExceeded,
)
from ..encryption.decryption import Decryption
from .arrival import Arrival

_WaitingEntry = tuple[MessageCommand, int, MetadataDecoder]


class EncryptedArrival:
    """The entries of one consumer that wait for a key. `release` follows each answer of the key reader."""

    __slots__ = ("_arrival", "_bytes_beyond", "_decryption", "_permits", "_waiting")

    def __init__(self, arrival: Arrival, decryption: Decryption, permits: Permits) -> None:
        self._arrival = arrival
        self._decryption = decryption
        self._permits = permits
        self._waiting: deque[_WaitingEntry] = deque()
        self._bytes_beyond = 0
        """Bytes of waiting entries for which the broker had no permit."""

    def __len__(self) -> int:
        """Return the number of entries that wait."""
        return len(self._waiting)

    def receive(
        self, command: MessageCommand, epoch: int, max_message_size: int, decoder: MetadataDecoder
    ) -> None:
        """Take one MESSAGE as `Arrival.receive` does, now or when its key has come. Raises `PermitsExceeded`
        when the broker has sent far more than its permits allow."""
        if not self._waiting:
            opened = _opened(command, decoder)
            if opened is None or not self._has_to_wait(opened[2]):
                self._receive(command, opened, epoch, max_message_size)
                return
        self._charge(len(command.payload))
        self._waiting.append((command, max_message_size, decoder))

    def receive_uniform(self, entries: UniformMessages, epoch: int, decoder: MetadataDecoder) -> bool:
        """Take plain entries as `Arrival.receive_uniform` does. Return False while entries wait."""
        return not self._waiting and self._arrival.receive_uniform(entries, epoch, decoder)

    def release(self, epoch: int) -> None:
        """Take the waiting entries up to the next one that has to wait. Raises like `Arrival.receive`."""
        waiting = self._waiting
        while waiting:
            command, max_message_size, decoder = waiting[0]
            opened = _opened(command, decoder)
            if opened is not None and self._has_to_wait(opened[2]):
                return
            waiting.popleft()
            self._receive(command, opened, epoch, max_message_size)
        self._bytes_beyond = 0

    def clear(self) -> None:
        """Drop the waiting entries: the broker redelivers them over the next connection."""
        for command, _, _ in self._waiting:
            self._arrival.withhold(command)
        self._decryption.stop_waiting()
        self._waiting.clear()
        self._bytes_beyond = 0

    def drop(self) -> None:
        """Drop the waiting entries and return their permits, while the connection stays: the broker
        redelivers them unasked, or the subscription was moved."""
        waiting, self._waiting = self._waiting, deque()
        self._decryption.stop_waiting()
        self._bytes_beyond = 0
        for command, _, _ in waiting:
            self._arrival.withhold(command)
            self._arrival.drop(command)

    def _charge(self, size: int) -> None:
        """Count one more waiting entry. Raises `PermitsExceeded`: each entry uses at least one permit."""
        beyond = len(self._waiting) + 1 - self._permits.queue_size
        if beyond <= 0:
            return
        self._bytes_beyond += size
        if beyond > MAX_ENTRIES_BEYOND_GRANT or self._bytes_beyond > MAX_BYTES_BEYOND_GRANT:
            raise PermitsExceeded(
                f"the broker sent {len(self._waiting) + 1} entries while the first waits for "
                f"encryption key {self._decryption.awaited!r:.100}, for a queue of {self._permits.queue_size}"
            )

    def _has_to_wait(self, metadata: MessageMetadata) -> bool:
        return bool(metadata.encryption_keys) and self._decryption.is_waiting_for(metadata)

    def _receive(
        self, command: MessageCommand, opened: OpenedPayload | None, epoch: int, max_message_size: int
    ) -> None:
        if opened is None:
            self._arrival.discard_unreadable(command)
        else:
            self._arrival.receive_opened(command, opened, epoch, max_message_size)


def _opened(command: MessageCommand, decoder: MetadataDecoder) -> OpenedPayload | None:
    """Return the payload with its headers; None where they are damaged."""
    try:
        return open_payload(command.payload, decoder)
    except (ChecksumMismatch, FrameError):
        return None
