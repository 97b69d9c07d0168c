"""`FailoverScript`: clusters that are up or down, and a client that chooses between them."""

import json
from typing import Any

from pulsar_sansio.client.outputs import Connect, FailoverFailed, ServiceUrlSwitched
from pulsar_sansio.model.config import AutoFailover
from pulsar_sansio.model.service_url import Address
from tests.client.lookup.http_script import response
from tests.client.script import Command, Script, frame_connected

FIRST = Address("first", 6650)
SECOND = Address("second", 6650)
THIRD = Address("third", 6650)
URLS = {address: f"pulsar://{address}" for address in (FIRST, SECOND, THIRD)}
FAILOVER = AutoFailover(
    (URLS[SECOND], URLS[THIRD]), failover_delay=5.0, switch_back_delay=10.0, check_interval=2.0
)


class FailoverScript(Script):
    """A client whose links are answered at once, by the clusters in `up`."""

    def __init__(self, **options: Any) -> None:
        self.up: set[Address] = set()
        """Hosts of the binary protocol that accept connections."""
        self.answers: dict[Address, bytes] = {}
        """The answers of hosts by HTTP."""
        self.probed: list[Address] = []
        """The addresses that the client connected to, in their order."""
        self.encrypted: list[str | None] = []
        """The `tls_name` of each of those connections."""
        super().__init__(**options)

    def drain(self) -> None:
        super().drain()
        while (connect := next((each for each in self.outputs if type(each) is Connect), None)) is not None:
            self.outputs.remove(connect)
            self.probed.append(connect.address)
            self.encrypted.append(connect.tls_name)
            link = connect.link
            if connect.address in self.up:
                self.client.connected(self.now, link)
                super().drain()
                self.sent(link, Command.CONNECT)
                self.client.receive_data(self.now, link, frame_connected())
            elif connect.address in self.answers:
                self.client.connected(self.now, link)
                super().drain()
                self.client.receive_data(self.now, link, self.answers[connect.address])
            else:
                self.client.disconnected(self.now, link, "refused")
            super().drain()

    def names(self, address: Address, **configuration: object) -> None:
        """Let the web service at this address answer so from now on."""
        self.answers[address] = response(json.dumps(configuration).encode())

    def switched(self) -> list[tuple[str, str]]:
        """Return the changes since the last call, each as the old and the new URL."""
        self.drain()
        found = [each for each in self.notices if isinstance(each, ServiceUrlSwitched)]
        self.notices = [each for each in self.notices if each not in found]
        return [(each.old, each.new) for each in found]

    def failures(self) -> list[Exception]:
        """Return the errors of failed choices since the last call."""
        self.drain()
        found = [each for each in self.notices if isinstance(each, FailoverFailed)]
        self.notices = [each for each in self.notices if each not in found]
        return [each.error for each in found]

    def pass_time(self, seconds: float) -> None:
        """Let time pass in small steps, so that each link is answered when the client asks for it."""
        end = self.now + round(seconds * 1_000_000_000)
        self.drain()
        while (deadline := self.client.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.client.handle_deadline(self.now)
            self.drain()
        self.now = end


def script(*up: Address, failover: AutoFailover = FAILOVER, url: str = URLS[FIRST], **options: Any) -> Any:
    made = FailoverScript(service_url=url, failover=failover, **options)
    made.up.update(up)
    return made
