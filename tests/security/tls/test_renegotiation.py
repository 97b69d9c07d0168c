"""A context refuses to renegotiate, and a context without that option shows that the peer of the test can."""

import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from pulsar_security import TlsConfig
from tests.security.certificates import Authority
from tests.security.renegotiating_peer import RenegotiatingPeer

OP_ALLOW_CLIENT_RENEGOTIATION = 1 << 8
"""Without SSL_OP_ALLOW_CLIENT_RENEGOTIATION, a server of OpenSSL 3 refuses by itself."""


class Near:
    """The side of the project, in memory."""

    def __init__(self, context: ssl.SSLContext, *, server: bool) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        name = None if server else "localhost"
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server, server_hostname=name)

    def shake_hands(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def meets(self, peer: RenegotiatingPeer) -> bool:
        """Exchange the bytes of both sides; False where there are none."""
        there, here = self._outgoing.read(), peer.outgoing()
        peer.receive(there)
        self._incoming.write(here)
        return bool(there or here)

    def read(self) -> None:
        with suppress(ssl.SSLWantReadError):
            self._tls.read()


@pytest.mark.parametrize("server", [True, False], ids=["a broker", "a client"])
@pytest.mark.parametrize("hardened", [True, False])
def test_only_a_context_without_the_option_renegotiates(server: bool, hardened: bool, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    files = authority.issue("localhost")
    context = (authority.server() if server else TlsConfig(trust=authority.file)).make_context()
    context.options |= OP_ALLOW_CLIENT_RENEGOTIATION
    if not hardened:
        context.options &= ~ssl.OP_NO_RENEGOTIATION
    near, peer = Near(context, server=server), RenegotiatingPeer(None if server else files)
    while not (near.shake_hands() & peer.shake_hands()):
        near.meets(peer)
    near.meets(peer)
    peer.ask_to_renegotiate()
    while near.meets(peer) and not peer.refused:
        near.read()
        peer.read()
    assert (peer.refused, peer.renegotiated) == (hardened, not hardened)
