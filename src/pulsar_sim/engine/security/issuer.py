"""`Issuer`: issues the credentials of a world and judges them on behalf of the brokers.

Owns the credentials that are valid, until when, and for which challenge. All times are those of the world's
clock, so a wall clock that a fault sets makes no valid credentials expire.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from pulsar_sansio.broker.config import BrokerConfig
from pulsar_sansio.broker.security.broker_authentication import BrokerAuthentication
from pulsar_sansio.broker.security.provider import Challenge, Identity, Outcome
from pulsar_sansio.model.errors import AuthenticationError
from pulsar_sansio.model.secret import Secret

from ..clock import MILLISECOND
from ..profile import CredentialsPlan

if TYPE_CHECKING:
    from ..nodes.broker_node import BrokerNode
    from ..surroundings import Surroundings

METHOD = "simulated"
"""The authentication method of all clients."""

MARK = "SECRET-"
"""The beginning of all credentials: a text with this mark holds a secret (INV-X1)."""

EXPIRED_FOR = 1_000 * MILLISECOND
"""Nanoseconds since which credentials that are issued as expired have expired."""


class Issuer:
    """Issues each credential once, with a number, so no two are equal."""

    def __init__(self, world: "Surroundings", plan: CredentialsPlan) -> None:
        self._world = world
        self.plan = plan
        self._issued = 0
        self._valid: dict[bytes, tuple[int | None, bytes | None]] = {}
        """Credentials that were issued: the end of their validity, and the challenge that they answer."""

    def issue(self, challenge: bytes | None, *, expired: bool = False) -> Secret:
        """Return new credentials. `challenge`: the broker's data in a later step of the method."""
        credentials = self._text("")
        now, lifetime = self._world.clock.now, self.plan.lifetime
        if expired:
            ends: int | None = now - EXPIRED_FOR
        else:
            ends = now + lifetime if lifetime else None
        self._valid[credentials] = (ends, challenge)
        return Secret(credentials)

    def forge(self) -> Secret:
        """Return credentials that no broker accepts."""
        return Secret(self._text("forged-"))

    def _text(self, kind: str) -> bytes:
        self._issued += 1
        return f"{MARK}{kind}{self._issued}".encode()

    def configured(self, config: BrokerConfig, node: "BrokerNode") -> BrokerConfig:
        """Return the options of a broker that asks this issuer about its clients."""
        return replace(
            config,
            authentication=BrokerAuthentication(
                (_Provider(self, node),), refresh_interval=self.plan.refresh_interval, authorization=False
            ),
        )

    def judge(self, node: "BrokerNode", credentials: bytes, challenge: bytes | None) -> Identity:
        """Return the identity that credentials prove. Raises `AuthenticationError`."""
        found = self._valid.get(credentials)
        if found is None or found[1] != challenge:
            raise AuthenticationError("credentials that were not issued")
        ends = found[0]
        broker = node.broker
        assert broker is not None
        return Identity("client", None if ends is None else broker.services.wall_time_of(ends))


class _Provider:
    """The authentication provider of one broker."""

    method = METHOD

    def __init__(self, issuer: Issuer, node: "BrokerNode") -> None:
        self._issuer = issuer
        self._node = node

    def authenticate(self, data: bytes, certificate: str | None) -> Outcome:
        """Judge the first step, and ask for the next one where the method has several."""
        identity = self._issuer.judge(self._node, data, None)
        return self._after(identity, self._issuer.plan.challenges)

    def _after(self, identity: Identity, left: int) -> Outcome:
        """Return the outcome after a step. `left`: the steps that follow."""
        if not left:
            return identity
        challenge = f"challenge {left}".encode()

        def judge(answer: bytes) -> Outcome:
            return self._after(self._issuer.judge(self._node, answer, challenge), left - 1)

        return Challenge(challenge, judge)
