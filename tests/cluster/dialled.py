"""`Dialled`: the addresses that the clients of this process connect to."""

import socket
from unittest.mock import patch

from pulsar_sansio import Address
from pulsar_trio.client import driver
from pulsar_trio.transport.connecting import connect


class Dialled:
    """Records the address of each attempt to connect, until it is asked for them."""

    def __init__(self) -> None:
        self._addresses: list[str] = []
        self._patch = patch.object(driver, "connect", self._connect)
        self._patch.start()

    async def _connect(self, address: Address, timeout: float) -> socket.socket:
        self._addresses.append(str(address))
        return await connect(address, timeout)

    def only(self, url: str) -> bool:
        """Stop, and return True when there were connections, all of them to the host and port of this URL."""
        self._patch.stop()
        return set(self._addresses) == {url.rpartition("//")[2]}
