"""`TlsSocket`: a non-blocking TLS connection with the calls of a socket that `Link` makes.

A `Link` writes inside of calls by the application, which must not wait. So a `TlsSocket` never waits. Its
owner repeats `shake_hands`, and waits for the socket between two calls.
"""

import os
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum

from pulsar_sansio import TlsError

from .common_name import common_name
from .tls_failures import tls_error

MAX_WRITE = 64 * 1024
"""Bytes given to one write: four TLS records."""

NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST")
"""The reasons of a handshake that failed because the peer does not speak TLS. OpenSSL sends no alert then."""

PROTOCOL_VERSION_ALERT = b"\x15\x03\x01\x00\x02\x02\x46"
"""A fatal alert `protocol_version` (RFC 8446, 6.2)."""


class Wanted(Enum):
    """The state of the socket that the next step of a handshake needs."""

    READABLE = "readable"
    WRITABLE = "writable"


class TlsFailure(OSError):
    """A TLS connection failed for a reason that has a type of its own, `error`."""

    def __init__(self, error: TlsError) -> None:
        super().__init__(str(error))
        self.error = error


class TlsSocket:
    """One TLS connection over a connected socket.

    The constructor sends nothing; `shake_hands` comes first. `server_name`: the name on the peer's
    certificate, for a client; None for the side of the server. `peer`: the text for the peer in errors.
    The `TlsSocket` owns `raw` from now on. Raises `TlsFailure` and `OSError`; the socket is then closed.
    """

    __slots__ = ("_ended", "_failed", "_peer", "_server_name", "_socket", "has_more")

    def __init__(
        self, raw: socket.socket, context: ssl.SSLContext, peer: str, server_name: str | None
    ) -> None:
        self._peer = peer
        self._server_name = server_name
        try:
            raw.setblocking(False)  # `ssl` goes by Python's own record of it, not by the system's
            self._socket = context.wrap_socket(
                raw,
                server_side=server_name is None,
                server_hostname=server_name,
                do_handshake_on_connect=False,
            )
        except (OSError, ValueError) as error:
            raw.close()
            raise _failure(error, peer, server_name) from error
        self._ended = False
        self._failed: ssl.SSLError | None = None
        """The error that came behind bytes which were read."""
        self.has_more = False
        """True when `recv_into` has something to give that `wait_readable` does not show."""

    def shake_hands(self) -> Wanted | None:
        """Go on with the handshake; returns what it waits for, or None when it is finished.

        Raises `TlsFailure`, and `OSError` for the socket's errors. The socket stays open.
        """
        try:
            self._socket.do_handshake()
        except ssl.SSLWantReadError:
            return Wanted.READABLE
        except ssl.SSLWantWriteError:
            return Wanted.WRITABLE
        except (OSError, ValueError) as error:
            raise _failure(error, self._peer, self._server_name) from error
        return None

    def end_failed_handshake(self, error: ssl.SSLError) -> None:
        """End this side after a handshake that failed by `error`, so that the peer can read the alert."""
        if error.reason in NOT_TLS:
            os.write(self.fileno(), PROTOCOL_VERSION_ALERT)
        socket.socket.shutdown(self._socket, socket.SHUT_WR)

    def common_name(self) -> str | None:
        """Return the common name of the peer's certificate; None when the peer has shown none."""
        return common_name(self._socket.getpeercert())

    def fileno(self) -> int:
        return self._socket.fileno()

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        self._socket.setsockopt(level, option, value)

    def recv_into(self, buffer: memoryview) -> int:
        """Read what has arrived, up to the size of the buffer; 0 at the end of the stream.

        Several records are read at once. Raises `BlockingIOError` when nothing has arrived.
        """
        size, room = 0, len(buffer)
        self.has_more = False
        if self._failed is not None:
            raise _failure(self._failed, self._peer, "") from self._failed
        while not self._ended and size < room:
            try:
                count = self._socket.recv_into(buffer[size:])
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if size:
                    return size
                raise BlockingIOError from None
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                count = 0
            except ssl.SSLError as error:
                if size:  # the bytes before it count; OpenSSL would tell of an end at the next call
                    self._failed = error
                    self.has_more = True
                    return size
                raise _failure(error, self._peer, "") from error
            self._ended = not count
            size += count
        self.has_more = bool(size)
        return size

    def send(self, data: bytes | memoryview) -> int:
        """Write up to `MAX_WRITE` bytes; returns their number. Raises `BlockingIOError` without room."""
        try:
            return self._socket.send(memoryview(data)[:MAX_WRITE])
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError) as error:
            raise ConnectionResetError("the peer has ended the TLS connection") from error
        except ssl.SSLError as error:
            raise _failure(error, self._peer, "") from error

    def sendmsg(self, chunks: Sequence[bytes | memoryview]) -> int:
        """Write up to `MAX_WRITE` bytes of the first chunks, joined, and copy no others.

        A call that found no room is repeated with the chunks that it had first, and others only behind them:
        a TLS record that has begun cannot change.
        """
        if len(chunks[0]) >= MAX_WRITE:
            return self.send(chunks[0])
        joined, room = [], MAX_WRITE
        for chunk in chunks:
            joined.append(chunk if len(chunk) <= room else memoryview(chunk)[:room])
            room -= len(joined[-1])
            if not room:
                break
        return self.send(b"".join(joined))

    def shutdown(self, how: int) -> None:
        """Tell the peer that nothing more comes, and end this side."""
        with suppress(OSError, ValueError):
            self._socket.unwrap()
        with suppress(OSError):
            self._socket.shutdown(how)

    def close(self) -> None:
        self._socket.close()


def _failure(error: Exception, peer: str, server_name: str | None) -> OSError:
    """Return the exception for a failed handshake, read or write."""
    if isinstance(error, (ssl.SSLError, ValueError)):
        return TlsFailure(tls_error(error, peer, server_name))
    if isinstance(error, ConnectionError) and server_name:
        return TlsFailure(tls_error(ssl.SSLEOFError(), peer, server_name))
    assert isinstance(error, OSError)
    return error
