"""`CredentialSource`: the part of a client process that answers the client's questions for credentials.

Owns what becomes of a question: the provider is prompt or slow, fails, or has credentials that are forged or
have expired. A slow answer may find that its link is gone. After healing each answer is prompt and right.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import CredentialsWanted
from pulsar_sansio.model.errors import CredentialsFailed

from ..clock import MILLISECOND, SECOND
from .issuer import Issuer

if TYPE_CHECKING:
    from ..nodes.client_node import ClientNode

SLOWEST = 12 * SECOND
"""Nanoseconds of the slowest answer: longer than the operation timeout of any world."""

PROMPT, FAILING, FORGED, EXPIRED = "prompt", "failing", "forged", "expired"


class CredentialSource:
    """The provider of one client process."""

    def __init__(self, node: "ClientNode", issuer: Issuer) -> None:
        self._node = node
        self._issuer = issuer
        self.owed: set[int] = set()
        """Links whose question has no answer yet; some may be gone."""
        self._stream = node.world.streams.stream(f"credentials of {node.name}")

    def refuses_certificate(self) -> bool:
        """Choose whether the peer of a new connection by TLS shows an expired certificate."""
        world = self._node.world
        if world.healed or not self._stream.chance(self._issuer.plan.bad_certificates_permille):
            return False
        world.count_fault("certificate_expired")
        return True

    def wanted(self, output: CredentialsWanted) -> None:
        """The client asks: choose the fate of the question, and when it is answered."""
        plan, stream, world = self._issuer.plan, self._stream, self._node.world
        fate = PROMPT
        delay = stream.below(plan.delay + 1)
        if not world.healed:
            if stream.chance(plan.slow_permille):
                world.count_fault("credentials_slow")
                delay = stream.spread(10 * MILLISECOND, SLOWEST)
            for kind, permille in (
                (FAILING, plan.failing_permille),
                (FORGED, plan.forged_permille),
                (EXPIRED, plan.expired_permille),
            ):
                if fate is PROMPT and stream.chance(permille):
                    world.count_fault(f"credentials_{kind}")
                    fate = kind
        self.owed.add(output.link)
        world.clock.after(delay, self._answer, output.link, output.challenge, fate)

    def _answer(self, link: int, challenge: bytes | None, fate: str) -> None:
        node = self._node
        if not node.alive:
            return
        self.owed.discard(link)
        world = node.world
        now, wire = world.clock.now, node.wires.get(link)
        if wire is None:
            world.count_fault("credentials_late")
        world.trace.add(now, node.name, f"credentials for link {link}: {fate}")
        watch = world.client_watch.credentials
        before = list(node.wires.values())
        if fate is FAILING:
            watch.failed(node.name, link)
            node.client.refuse_credentials(now, link, CredentialsFailed("the provider failed"))
        else:
            if fate is FORGED:
                credentials = self._issuer.forge()
            else:
                credentials = self._issuer.issue(challenge, expired=fate is EXPIRED)
            watch.answered(node.name, link, credentials.reveal())
            node.client.provide_credentials(now, link, credentials)
        node.pump()
        if fate is FAILING:
            watch.check_alone(link, before)
        if wire is not None:
            watch.check_sent(wire)
