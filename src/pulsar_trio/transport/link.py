"""One TCP connection as both sides need it: a reader, a writer, and an end that loses nothing.

A `Link` owns a connected non-blocking socket. It knows nothing of Pulsar. Bytes that arrive go to `on_data`.
The link pulls bytes to write from `take` when the socket has room, so the bytes not taken yet measure the
socket. Only this module makes socket calls on the data path. A user's cancellation never gets here: only
`write_now` runs inside a user's task, and it does not wait.
"""

import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice

import trio

from pulsar_sansio import TlsError
from pulsar_security import TlsFailure, TlsSocket

READ_SIZE = 1024 * 1024
"""Bytes asked of one read: large enough that a fast sender costs one wake-up per megabyte.

All links of a pump share one buffer for reading, and copy the bytes out. Asking the system for a megabyte of
fresh memory costs more than a hundred small messages.
"""

MAX_CHUNKS = 64
"""Chunks handed to one `sendmsg`."""

SMALL_CHUNK = 4 * 1024
"""Bytes, on the average, below which more chunks than that are joined first. Copying larger ones would cost
more than several calls."""

LINGER = 0.25
"""Seconds an ending link waits for its last bytes to be taken and for the peer to end its side as well."""


class Link:
    """One socket with a reader task and a writer task, run by `run`.

    `buffer`: where bytes are read to, for a moment. `take`: gives the chunks to write, and an empty list when
    there are none. `may_read`: asked before each read; while it is false nothing is read until `resume` is
    called. `scope`: encloses the whole life of the link, connecting included; `finish`, `abort` and `fail`
    end it.
    """

    __slots__ = (
        "_buffer",
        "_closing",
        "_leftover",
        "_may_read",
        "_read_scope",
        "_resumed",
        "_socket",
        "_take",
        "_wanted",
        "bytes_received",
        "bytes_sent",
        "failure",
        "scope",
    )

    def __init__(
        self,
        buffer: memoryview,
        take: Callable[[], Sequence[bytes]],
        may_read: Callable[[], bool] | None = None,
    ) -> None:
        self._buffer = buffer
        self._take = take
        self._may_read = may_read
        self._socket: socket.socket | TlsSocket | None = None
        self._leftover: deque[bytes | memoryview] = deque()
        self._wanted = trio.lowlevel.ParkingLot()
        self._resumed = trio.lowlevel.ParkingLot()
        self.scope = trio.CancelScope()
        self._read_scope = trio.CancelScope()
        self._closing = False
        self.failure = ""
        """The reason given to `fail`."""
        self.bytes_received = 0
        self.bytes_sent = 0

    # --- called from synchronous code ----------------------------------------------------------------

    def transmit(self) -> None:
        """There is something to write: the writer task does it when it next runs."""
        self._wanted.unpark()

    def resume(self) -> None:
        """`may_read` may be true again."""
        self._resumed.unpark()

    def write_now(self) -> None:
        """Write as much as the socket takes, without waiting; the writer task does the rest.

        A socket error is left for the writer task to meet, so that it is reported once and from
        the link's own task.
        """
        if self._socket is not None and not self._leftover:
            with suppress(OSError):
                self._write(self._socket)
            if self._leftover:
                self._wanted.unpark()

    def finish(self) -> None:
        """Write what is left, end our side, and close when the peer has ended its own."""
        if not self._closing:
            self._closing = True
            self._leftover.extend(_joined(self._take()))
            if self._socket is None:
                self.scope.cancel()
                return
            self.scope.deadline = trio.current_time() + LINGER
            self._read_scope.cancel()
            self._wanted.unpark()

    def abort(self) -> None:
        """Close at once; what was not written is lost."""
        self._closing = True
        self.scope.cancel()

    def fail(self, reason: str) -> None:
        """Close at once, for a failure of this link."""
        self.failure = reason
        self.abort()

    # --- the link's own tasks, inside of `with link.scope` -------------------------------------------

    def open(self, sock: socket.socket | TlsSocket) -> None:
        """Take a connected, non-blocking socket; from here on `write_now` works."""
        self._socket = sock

    async def run(self, on_data: Callable[[bytes], None], on_eof: Callable[[], None]) -> str | TlsError:
        """Read and write until the link ends, and close the socket; gives the reason of an end that was
        not asked for, else "".

        Raises nothing that sockets raise. An exception of `on_data` or `on_eof` ends the link and comes out.
        """
        sock = self._socket
        assert sock is not None
        reasons: list[str | TlsError] = []
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._run_writer, sock, reasons, nursery.cancel_scope)
                if not await self._read(sock, on_data, on_eof, reasons):
                    nursery.cancel_scope.cancel()
        finally:
            self._socket = None
            sock.close()
        return "" if self._closing else (reasons or ["the link ended"])[0]

    async def _read(
        self,
        sock: socket.socket | TlsSocket,
        on_data: Callable[[bytes], None],
        on_eof: Callable[[], None],
        reasons: list[str | TlsError],
    ) -> bool:
        """Read until the link ends; true when writing continues (the peer's end), false after a failure."""
        buffer, may_read = self._buffer, self._may_read
        with self._read_scope:
            try:
                while True:
                    if may_read is not None and not may_read():
                        await self._resumed.park()
                        continue
                    if type(sock) is TlsSocket and sock.has_more:
                        await trio.lowlevel.checkpoint()
                    else:
                        await trio.lowlevel.wait_readable(sock)
                    try:
                        size = sock.recv_into(buffer)
                    except BlockingIOError:
                        continue
                    if not size:
                        on_eof()
                        return True
                    self.bytes_received += size
                    on_data(bytes(buffer[:size]))
            except OSError as error:
                reasons.append(error.error if isinstance(error, TlsFailure) else f"reading failed: {error}")
                return False
        return True

    async def _run_writer(
        self, sock: socket.socket | TlsSocket, reasons: list[str | TlsError], both: trio.CancelScope
    ) -> None:
        try:
            while not self._closing:
                self._write(sock)
                if self._leftover:
                    await trio.lowlevel.wait_writable(sock)
                elif not self._closing:
                    await self._wanted.park()
            await self._end(sock)
        except OSError as error:
            reasons.append(error.error if isinstance(error, TlsFailure) else f"writing failed: {error}")
        both.cancel()

    async def _end(self, sock: socket.socket | TlsSocket) -> None:
        """The last bytes, the end of our side, and the peer's end.

        Closing with unread bytes in the receive buffer would reset the connection, and a reset may
        overtake what was written last.
        """
        while not self._write_leftover(sock):
            await trio.lowlevel.wait_writable(sock)
        sock.shutdown(socket.SHUT_WR)
        while True:
            await trio.lowlevel.wait_readable(sock)  # TLS is over: `has_more` counts no more
            try:
                if not sock.recv_into(self._buffer):
                    return
            except BlockingIOError:
                continue

    # --- writing -----------------------------------------------------------------------------------

    def _write(self, sock: socket.socket | TlsSocket) -> None:
        """Write leftovers, then pull and write until the socket is full or nothing is left."""
        while True:
            if not self._write_leftover(sock) or self._closing:
                return
            chunks = self._take()
            if not chunks:
                return
            # Before what is left: taking may have ended the link, and so have left its last bytes.
            self._leftover.extendleft(reversed(_joined(chunks)))

    def _write_leftover(self, sock: socket.socket | TlsSocket) -> bool:
        """Write until the socket is full, which gives False, or nothing is left.

        A socket that took a part may not be full: one write takes a limited number of chunks, and with TLS a
        few records. Asking it once more costs less than a turn of the event loop.
        """
        chunks = self._leftover
        while chunks:
            try:
                if len(chunks) == 1:
                    sent = sock.send(chunks[0])
                else:
                    sent = sock.sendmsg(list(islice(chunks, MAX_CHUNKS)))
            except BlockingIOError:
                return False
            self.bytes_sent += sent
            self._drop(sent)
        return True

    def _drop(self, sent: int) -> None:
        """Forget bytes that were written."""
        chunks = self._leftover
        while chunks:
            chunk = chunks.popleft()
            size = len(chunk)
            if sent < size:
                chunks.appendleft(memoryview(chunk)[sent:] if sent else chunk)
                return
            sent -= size


def _joined(chunks: Sequence[bytes]) -> Sequence[bytes]:
    """The same bytes, in one chunk where they are many small ones."""
    if len(chunks) > MAX_CHUNKS and sum(map(len, chunks)) < len(chunks) * SMALL_CHUNK:
        return [b"".join(chunks)]
    return chunks
