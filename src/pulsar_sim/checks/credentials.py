"""`CredentialWatch`: the credentials of every link, from the question to the frame that carries them.

Owns INV-N10 and INV-X2: each AUTH_CHALLENGE leads to one question, each answer of the provider to one frame
with exactly those credentials, and nothing is asked for a host that the client may not connect to. Owns
INV-N15, too: a provider that is slow or fails holds up the link of its question and no other.
"""

from collections import deque
from collections.abc import Collection, Iterable
from typing import Any, TypeAlias

from ..engine.clock import SECOND
from ..engine.failures import ViolationError
from ..engine.network import Wire

Link: TypeAlias = tuple[str, int]
"""A client process and its number of the link."""

MOST_CHALLENGES = 10
"""AUTH_CHALLENGEs of one second that a client has to answer (GAP-33)."""


class _LinkAccount:
    """The questions and answers of one link."""

    __slots__ = ("answer", "asked", "challenges", "failed", "recent")

    def __init__(self) -> None:
        self.asked = False
        """A question has no answer."""
        self.answer: bytes | None = None
        """The provider's answer, until a frame has carried it."""
        self.challenges = 0
        """AUTH_CHALLENGEs that have led to no question."""
        self.failed = False
        """The provider has failed, and the client ends the link."""
        self.recent: deque[int] = deque(maxlen=MOST_CHALLENGES + 1)
        """The times at which the latest AUTH_CHALLENGEs arrived."""


class CredentialWatch:
    """The credentials of all clients. `hosts`: those that clients may connect to; None is every host."""

    def __init__(self, hosts: Collection[str] | None) -> None:
        self._hosts = hosts
        self._links: dict[Link, _LinkAccount] = {}

    @property
    def active(self) -> bool:
        """True where clients have credentials."""
        return self._hosts is not None

    def connects(self, client: str, host: str, tls_name: str | None, tls: bool) -> None:
        """INV-X2: a client connects to allowed hosts only, and verifies each by its own name."""
        if self._hosts is None:
            return
        if host not in self._hosts:
            raise ViolationError("INV-X2", f"{client} connects to {host}")
        if tls_name != (host if tls else None):
            raise ViolationError("INV-X2", f"{client} connects to {host} and verifies the name {tls_name}")

    def asked(self, client: str, link: int, host: str, wire: Wire | None) -> None:
        """The client asks its provider for credentials."""
        account = self._links.setdefault((client, link), _LinkAccount())
        if wire is None or wire.broker.name != host:
            raise ViolationError("INV-X2", f"{client} asks for credentials for {host}, without a wire there")
        if account.asked:
            raise ViolationError("INV-N10", f"{client} asks twice for the credentials of link {link}")
        account.asked = True
        if account.challenges:
            account.challenges -= 1

    def check_asked(self, wire: Wire) -> None:
        """INV-N15: a link that opens leads to its question at once, whatever other links wait for."""
        if self.active and wire.client_open and self._account(wire) is None:
            raise ViolationError("INV-N15", f"wire {wire.number} is open and leads to no question")

    @staticmethod
    def check_alone(failed: int, before: Iterable[Wire]) -> None:
        """INV-N15: the provider has failed for one link, so the client ended no other one.

        `before`: the wires that the client had open.
        """
        for wire in before:
            if wire.client_link != failed and not wire.client_open:
                raise ViolationError(
                    "INV-N15", f"wire {wire.number} ends because the provider failed for link {failed}"
                )

    def answered(self, client: str, link: int, credentials: bytes) -> None:
        """The provider has credentials; the link may be gone."""
        account = self._links.get((client, link))
        if account is not None:
            account.asked = False
            account.answer = credentials

    def failed(self, client: str, link: int) -> None:
        """The provider has none."""
        account = self._links.get((client, link))
        if account is not None:
            account.failed = True

    def excuses_end(self, wire: Wire, now: int) -> bool:
        """True when the client may end the wire: the provider failed, or the broker challenges too often."""
        account = self._account(wire)
        if account is None:
            return False
        recent = account.recent
        return account.failed or (len(recent) > MOST_CHALLENGES and now - recent[0] < SECOND)

    def wrote_connect(self, wire: Wire, command: Any) -> None:
        """INV-N10: CONNECT carries the credentials of its link, and offers to renew them."""
        if not self.active:
            return
        self._wrote(wire, "CONNECT", command.auth_data)
        if not command.feature_flags.supports_auth_refresh:
            raise ViolationError("INV-N10", f"wire {wire.number}: CONNECT offers no renewal")

    def wrote_response(self, wire: Wire, command: Any) -> None:
        """INV-N10: AUTH_RESPONSE carries the credentials that the provider gave for the challenge."""
        self._wrote(wire, "AUTH_RESPONSE", command.response.auth_data)

    def _wrote(self, wire: Wire, frame: str, credentials: bytes) -> None:
        account = self._account(wire)
        if account is None or account.answer is None:
            raise ViolationError("INV-N10", f"wire {wire.number}: {frame} with credentials of no answer")
        answer, account.answer = account.answer, None
        if credentials != answer:
            raise ViolationError("INV-N10", f"wire {wire.number}: {frame} with other credentials than given")

    def check_sent(self, wire: Wire) -> None:
        """INV-N10: the client passes an answer on at once, while the link lives."""
        account = self._account(wire)
        if account is not None and account.answer is not None and wire.client_open:
            raise ViolationError("INV-N10", f"wire {wire.number}: the credentials are not sent")

    def challenged(self, wire: Wire, now: int) -> None:
        """AUTH_CHALLENGE has arrived."""
        account = self._account(wire)
        if account is not None:
            account.challenges += 1
            account.recent.append(now)

    def settled(self, wire: Wire) -> None:
        """INV-N10: the client has handled its input, so it has asked for what a challenge wants."""
        account = self._account(wire)
        if account is not None and account.challenges and not account.asked and wire.client_open:
            raise ViolationError("INV-N10", f"wire {wire.number}: an AUTH_CHALLENGE leads to no question")

    def forget(self, wire: Wire) -> None:
        """The link has ended."""
        self._links.pop((wire.client.name, wire.client_link), None)

    def _account(self, wire: Wire) -> _LinkAccount | None:
        return self._links.get((wire.client.name, wire.client_link))
