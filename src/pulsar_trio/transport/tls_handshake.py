"""The TLS handshake under trio; afterwards a `Link` uses the `TlsSocket`.

trio's `SSLStream` sends by awaiting, and a `Link` writes inside a task of the application, which must not
wait.
"""

import os
import socket
import ssl
from contextlib import suppress

import trio

from pulsar_security import TlsFailure, TlsSocket, Wanted

ALERT_TIME = 0.25
"""Seconds for a client whose handshake failed to read the alert."""

MAX_ALERT_READS = 16
"""Reads of a client's bytes meanwhile; they are dropped."""

READ_SIZE = 64 * 1024
"""Bytes of one such read."""


async def encrypt(
    raw: socket.socket, context: ssl.SSLContext, peer: str, server_name: str | None
) -> TlsSocket:
    """Encrypt a connected, non-blocking socket, which this call owns from now on; see `TlsSocket`.

    Raises `TlsFailure`, and `OSError` for the socket's errors; the socket is then closed.
    """
    encrypted = TlsSocket(raw, context, peer, server_name)
    try:
        while (wanted := encrypted.shake_hands()) is not None:
            if wanted is Wanted.READABLE:
                await trio.lowlevel.wait_readable(encrypted)
            else:
                await trio.lowlevel.wait_writable(encrypted)
    except BaseException as error:
        try:
            if server_name is None and isinstance(error, TlsFailure):
                await _let_read_alert(encrypted, error)
        finally:
            encrypted.close()
        raise
    return encrypted


async def _let_read_alert(encrypted: TlsSocket, error: TlsFailure) -> None:
    """End this side and read what the peer still sends: closing with bytes unread would reset the connection,
    and the peer would not see the alert that says why."""
    with suppress(OSError), trio.move_on_after(ALERT_TIME):
        if isinstance(error.__cause__, ssl.SSLError):
            encrypted.end_failed_handshake(error.__cause__)
            for _ in range(MAX_ALERT_READS):
                await trio.lowlevel.wait_readable(encrypted)
                if not os.read(encrypted.fileno(), READ_SIZE):
                    return
