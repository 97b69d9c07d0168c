"""`ClientIdentity`: the TLS context and the credentials of one client, for all of its connections."""

import socket
import ssl

import trio

from pulsar_sansio import Address, CredentialsFailed, InvalidConfiguration, Secret, TlsError
from pulsar_sansio import client_outputs as outputs
from pulsar_security import ReloadedContext, TlsConfig, TlsFailure, TlsSocket

from ..application_function import described
from ..transport.tls_handshake import encrypt
from .authentication import Authentication, CredentialSteps


class ClientIdentity:
    """`tls`: None for the defaults of `TlsConfig`. `authentication`: None for one without credentials.

    Raises `InvalidConfiguration` for a file that cannot be used.
    """

    def __init__(self, tls: TlsConfig | None, authentication: Authentication | None) -> None:
        self._context = None if tls is None else ReloadedContext(tls)
        """The context is None until a connection needs it: a later service URL may be the first with TLS."""
        self._authentication = authentication
        self._steps: dict[int, CredentialSteps] = {}
        """The steps that each link is at."""
        self._shown: dict[int, Secret] = {}
        """The last credentials of each link."""
        self._refused: list[Secret] = []
        """Credentials that the provider has to discard before it is asked again."""

    async def encrypt(self, raw: socket.socket, address: Address, server_name: str) -> TlsSocket:
        """Make the TLS handshake on a connected socket. Raises `TlsFailure` and `OSError`; the socket is then
        closed."""
        return await encrypt(raw, self._current_context(raw), str(address), server_name)

    def _current_context(self, raw: socket.socket) -> ssl.SSLContext:
        try:
            if self._context is None:
                self._context = ReloadedContext(TlsConfig())
            return self._context.current()
        except InvalidConfiguration as error:
            raw.close()
            raise TlsFailure(TlsError(str(error))) from error

    async def credentials(self, wanted: outputs.CredentialsWanted, seconds: float) -> Secret:
        """Ask the application's provider for the credentials that a link wants.

        Raises `CredentialsFailed` when the provider fails, or does not answer within `seconds`.
        """
        method = wanted.method
        try:
            with trio.fail_after(seconds):
                found = await self._next(wanted)
        except trio.TooSlowError:
            text = f"no {method!r} credentials: the provider did not answer within {seconds:g} s"
            raise CredentialsFailed(text) from None
        except Exception as error:
            raise CredentialsFailed(f"no {method!r} credentials: {described(error)}") from error
        if not isinstance(found, Secret):
            raise CredentialsFailed(
                f"no {method!r} credentials: the provider returned {type(found).__name__}, not a Secret"
            )
        self._shown[wanted.link] = found
        return found

    async def _next(self, wanted: outputs.CredentialsWanted) -> object:
        authentication = self._authentication
        assert authentication is not None
        if wanted.challenge is None:
            self.refused(wanted.link)  # a broker that asks once more wants others
            while self._refused:
                authentication.discard(self._refused.pop())
            steps = authentication.steps(wanted.broker.host)
            self._steps[wanted.link] = steps
            return await steps.first()
        return await self._steps[wanted.link].answer(wanted.challenge)

    def refused(self, link: int) -> None:
        """The broker takes the last credentials of a link no more, if it had any."""
        shown = self._shown.pop(link, None)
        if shown is not None:
            self._refused.append(shown)

    def disconnected(self, link: int) -> None:
        """A link has ended: discard its steps."""
        self._steps.pop(link, None)
        self._shown.pop(link, None)
