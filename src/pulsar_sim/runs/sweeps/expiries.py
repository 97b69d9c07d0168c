"""The sweep of credentials: they expire at a chosen byte of a conversation, and the broker asks for new ones.

Owns the points, and the worlds of scenarios with credentials. The broker asks on the connection in use, so
nothing that was sent or received before may be lost or doubled.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from ...engine.network import Listener, Network, NetworkEndpoint, Pipe, Wire
from ...engine.nodes.broker_node import BrokerNode
from ...engine.profile import CredentialsPlan, Profile
from ..scenarios import Scenario, ScenarioWorld, must_pass


@dataclass(frozen=True, slots=True)
class Expiry:
    """The credentials of `wire` (by number) expire when `byte` bytes have arrived in one direction."""

    wire: int
    to_broker: bool
    byte: int

    def __str__(self) -> str:
        return f"expiry wire {self.wire} {'to' if self.to_broker else 'from'} broker byte {self.byte}"

    @classmethod
    def parse(cls, text: str) -> "Expiry":
        """Raises `ValueError` where the text is not that of a point."""
        words = text.split()
        if len(words) != 7 or words[3] not in ("to", "from"):
            raise ValueError(f"no point of an expiry: {text!r}")
        return cls(int(words[2]), words[3] == "to", int(words[6]))


class ExpiringPipe(Pipe):
    """Delivers so many bytes, lets the credentials of the wire expire, and delivers the rest."""

    __slots__ = ("_expired", "_expiry")

    def __init__(self, wire: Wire, expiry: Expiry, expired: Callable[[], None]) -> None:
        super().__init__(wire, expiry.to_broker)
        self._expiry: Expiry | None = expiry
        self._expired = expired

    def _hand_over(self, data: bytes) -> None:
        expiry = self._expiry
        if expiry is None or self.arrived + len(data) < expiry.byte:
            super()._hand_over(data)
            return
        self._expiry = None
        keep = expiry.byte - self.arrived
        if keep:
            super()._hand_over(data[:keep])
        broker = self.wire.broker
        assert isinstance(broker, BrokerNode)
        if broker.expire_credentials(self.wire.broker_link):
            self._expired()
        if data[keep:]:
            super()._hand_over(data[keep:])


class ExpiringWorld(ScenarioWorld):
    """A scenario with credentials, which expire on one wire; None lets none expire."""

    def __init__(self, scenario: Scenario, expiry: Expiry | None, keep_trace: bool = False) -> None:
        super().__init__(replace(scenario, profile=partial(_with_credentials, scenario)), keep_trace)
        self._expiry = expiry
        self.wires: list[Wire] = []
        """All there ever were."""
        self.expired = 0
        """The number of expiries: none before CONNECTED, and none after the end of the wire."""
        self.network.make_wire = self._make_wire

    def _make_wire(
        self, network: Network, number: int, client: NetworkEndpoint, link: int, broker: Listener
    ) -> Wire:
        wire = Wire(network, number, client, link, broker)
        expiry = self._expiry
        if expiry is not None and expiry.wire == number:
            pipe = ExpiringPipe(wire, expiry, self._has_expired)
            if expiry.to_broker:
                wire.to_broker = pipe
            else:
                wire.to_client = pipe
        self.wires.append(wire)
        return wire

    def _has_expired(self) -> None:
        self.expired += 1
        self.trace.add(self.clock.now, "fault", f"{self._expiry}")


def _with_credentials(scenario: Scenario) -> Profile:
    profile = scenario.profile()
    profile.credentials = CredentialsPlan()
    return profile


def expiries(scenario: Scenario) -> list[Expiry]:
    """Every byte of every wire of the applications, both directions."""
    world = ExpiringWorld(scenario, None)
    must_pass(world.run(), scenario)
    return [
        Expiry(wire.number, pipe.to_broker, byte)
        for wire in world.wires
        if not wire.client.name.startswith("auditor")
        for pipe in (wire.to_broker, wire.to_client)
        for byte in range(pipe.arrived + 1)
    ]
