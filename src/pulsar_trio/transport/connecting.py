"""Connect a socket to a host and port: resolve the name, and try the addresses in turn."""

import os
import socket

import trio

from pulsar_sansio import Address


async def connect(address: Address, timeout: float) -> socket.socket:
    """A connected, non-blocking TCP socket to the first address of the host that answers.

    `timeout`: seconds for all addresses together; each gets an equal share of what is left, so that
    one that swallows packets does not use up the time of the next. Raises `OSError` whose text names the
    address and what went wrong.
    """
    deadline = trio.current_time() + timeout
    problem = f"no answer within {timeout:g} s"
    with trio.move_on_at(deadline):
        try:
            found = await trio.socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise OSError(f"cannot resolve {address.host!r}: {error}") from error
        for index, (family, kind, protocol, _, socket_address) in enumerate(found):
            share = (deadline - trio.current_time()) / (len(found) - index)
            try:
                raw = socket.socket(family, kind, protocol)
            except OSError as error:  # of a family that this system does not have
                problem = _reason(error)
                continue
            try:
                with trio.move_on_after(share) as scope:
                    await trio.socket.from_stdlib_socket(raw).connect(socket_address)
                if not scope.cancelled_caught:
                    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    return raw
                problem = f"no answer within {share:g} s"
            except OSError as error:
                problem = _reason(error)
            except BaseException:
                raw.close()
                raise
            raw.close()
    raise OSError(f"cannot connect to {address}: {problem}")


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)
