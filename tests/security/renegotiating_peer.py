"""`RenegotiatingPeer`: one side of TLS 1.2 that may ask for a second handshake, without a socket.

The standard library cannot begin a renegotiation, so this side is pyOpenSSL's.
"""

from contextlib import suppress

from OpenSSL import SSL

from .certificates import Files

RECORD = 32 * 1024
"""Bytes of the largest TLS record, rounded up."""


class RenegotiatingPeer:
    """A server with the certificate of `files`, or a client that accepts any certificate where it is None.

    `receive` and `outgoing` move the encrypted bytes. Each other call goes on as far as it can.
    """

    def __init__(self, files: Files | None) -> None:
        context = SSL.Context(SSL.TLS_METHOD)
        context.set_max_proto_version(SSL.TLS1_2_VERSION)
        if files is not None:
            context.use_certificate_chain_file(str(files.certificate))
            context.use_privatekey_file(str(files.key))
        self._connection = SSL.Connection(context, None)
        if files is None:
            self._connection.set_connect_state()
        else:
            self._connection.set_accept_state()
        self._asked = False
        self.refused = False
        """True when the other side has refused the renegotiation; OpenSSL ends the connection then."""

    @property
    def renegotiated(self) -> bool:
        """True when the second handshake is complete."""
        return self._asked and not self._connection.renegotiate_pending()

    def receive(self, data: bytes) -> None:
        """Take encrypted bytes."""
        if data:
            self._connection.bio_write(data)

    def outgoing(self) -> bytes:
        """Return the encrypted bytes for the other side."""
        found = bytearray()
        with suppress(SSL.WantReadError):
            while True:
                found += self._connection.bio_read(RECORD)
        return bytes(found)

    def shake_hands(self) -> bool:
        """Go on with the first handshake; True when it is finished."""
        try:
            self._connection.do_handshake()
        except SSL.WantReadError:
            return False
        return True

    def write(self, data: bytes) -> None:
        """Encrypt bytes of the application."""
        self._connection.sendall(data)

    def ask_to_renegotiate(self) -> None:
        """Begin a second handshake: a server sends HelloRequest, a client sends ClientHello."""
        self._asked = self._connection.renegotiate()
        assert self._asked
        with suppress(SSL.WantReadError):
            self._connection.do_handshake()

    def read(self) -> bytes:
        """Return the bytes of the application that came, and go on with a second handshake."""
        found = bytearray()
        try:
            while not self.refused:
                found += self._connection.recv(RECORD)
        except SSL.WantReadError:
            pass
        except SSL.Error as error:
            if "no renegotiation" not in str(error):
                raise
            self.refused = True
        return bytes(found)
