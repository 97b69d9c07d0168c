"""`CredentialExchange`: the credentials of one connection, in the handshake and when the broker renews them.

The machine holds no credentials. It emits `CredentialsWanted`, and the driver answers when it has them. The
exchange owns the one outstanding question of its connection. A provider that is slow or fails holds up this
connection alone.
"""

from collections.abc import Callable
from typing import Any

from ...core.context import Context
from ...model.errors import AuthenticationError, CredentialsFailed, RemoteProtocolError
from ...model.secret import Secret
from ...model.service_url import Address
from ..outputs import CredentialsWanted

REFRESH = b"PulsarAuthRefresh"
"""The data of an AUTH_CHALLENGE that asks for new credentials of a connection in use."""

MAX_CHALLENGE = 64 * 1024
"""Bytes of the largest AUTH_CHALLENGE data that the client passes to the driver."""

MAX_CHALLENGES = 10
"""AUTH_CHALLENGE commands of one handshake, and later of one `CHALLENGE_PERIOD` (GAP-33, INV-N10). Each makes
the driver ask its source of credentials, which may be an issuer on the network."""

CHALLENGE_PERIOD = 1_000_000_000
"""Nanoseconds."""


class CredentialExchange:
    """The questions for credentials of one connection, one at a time.

    `method`: the authentication method, None for a client without credentials.
    """

    __slots__ = (
        "_again",
        "_asked",
        "_broker",
        "_challenges",
        "_connected",
        "_context",
        "_counted_from",
        "_link",
        "method",
    )

    def __init__(self, context: Context[Any], link: int, broker: Address, method: str | None) -> None:
        self.method = method
        self._context = context
        self._link = link
        self._broker = broker
        self._asked: Callable[[Secret], None] | None = None
        """Receives the answer of the outstanding question."""
        self._again = False
        """True when the broker asked for new credentials while a question was outstanding."""
        self._challenges = 0
        """Challenges of the handshake, or since `_counted_from` (ns) on a connection that is ready."""
        self._connected = False
        self._counted_from = 0

    @property
    def waiting(self) -> bool:
        """True while the driver owes an answer."""
        return self._asked is not None

    def begin(self, then: Callable[[Secret], None]) -> None:
        """Ask the driver for the credentials that CONNECT carries."""
        self._ask(None, then)

    def connected(self) -> None:
        """The handshake is over: challenges are counted by time from now on."""
        self._connected = True
        self._counted_from = self._context.now
        self._challenges = 0

    def challenged(self, challenge: Any, then: Callable[[Secret], None]) -> None:
        """Ask the driver for the answer to an AUTH_CHALLENGE.

        A request to renew the credentials that comes while a question is outstanding is asked after it.
        Raises `AuthenticationError` when the client has no credentials of the broker's method, and
        `RemoteProtocolError` for a challenge that is too large, that follows an unanswered one, or that comes
        after too many.
        """
        asked_method, data = challenge.auth_method_name[:100], challenge.auth_data
        if self.method is None:
            raise AuthenticationError(
                f"the broker asks for {asked_method!r} credentials and this client has none"
            )
        if asked_method and asked_method != self.method:
            raise AuthenticationError(
                f"the broker asks for {asked_method!r} credentials and this client has {self.method!r} ones"
            )
        if len(data) > MAX_CHALLENGE:
            raise RemoteProtocolError(f"an AUTH_CHALLENGE of {len(data)} bytes, allowed are {MAX_CHALLENGE}")
        self._count_challenge()
        if self._asked is None:
            self._ask(None if data == REFRESH else data, then)
        elif data == REFRESH:
            self._again = True
        else:
            raise RemoteProtocolError("the broker sent an AUTH_CHALLENGE before the answer to the last one")

    def _count_challenge(self) -> None:
        now = self._context.now
        if self._connected and now - self._counted_from >= CHALLENGE_PERIOD:
            self._counted_from = now
            self._challenges = 0
        self._challenges += 1
        if self._challenges > MAX_CHALLENGES:
            where = "within a second" if self._connected else "in one handshake"
            raise RemoteProtocolError(f"more than {MAX_CHALLENGES} AUTH_CHALLENGE {where}")

    def provided(self, credentials: Secret) -> None:
        """The driver answers. An answer that no question waits for is ignored: the link was closed."""
        then, self._asked = self._asked, None
        if then is None:
            return
        then(credentials)
        if self._again:
            self._again = False
            self._ask(None, then)

    def not_in_time(self, physical: Address, seconds: float) -> CredentialsFailed:
        """Return the error of a connection to `physical` that waited so long for the credentials."""
        return CredentialsFailed(f"no {self.method!r} credentials for {physical} within {seconds:g} s")

    def cleared(self) -> None:
        """The connection ended: no answer is wanted any more."""
        self._asked = None
        self._again = False

    def _ask(self, challenge: bytes | None, then: Callable[[Secret], None]) -> None:
        assert self.method is not None
        self._asked = then
        self._context.emit(CredentialsWanted(self._link, self._broker, self.method, challenge))
